"""The teachers of a gateway, or of `stenograph score`: samples in, the same samples with the teachers' word out.

    wanted   sample                        → runs of positions, and their names       wanted.py    (pure)
    known    names                         → lessons that are in the store
    begin    another context               → the ids in place of the first prompt     opening.py   (pure)
    order    sequences                     → who waits for whom                       order.py
    score    a sequence                    → logprobs, the likeliest tokens           tutor.py     (I/O)
    commit   lessons                       → durable, as each sequence comes back     store
    teach    lessons                       → rows, aligned with the sample's tokens   lessons.py   (pure)

A run that several branches share is asked of the first of them alone. What is durable is never asked again, so that a
process that was killed goes on where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stenograph.core import Ids, Lesson, Sample, Teacher, Value
from stenograph.errors import CallerError, EngineError, NotFound
from stenograph.render.renderer import Renderer
from stenograph.store.store import Store
from stenograph.teacher import lessons
from stenograph.teacher.opening import Beginning, Reading, beginning
from stenograph.teacher.order import in_order, sorting
from stenograph.teacher.tutor import Tutor
from stenograph.teacher.wanted import Run, Wanted, overrides, wanted


class Job(Value):
    """One sequence, as it is sent."""

    reading: Reading
    asked: Wanted
    runs: tuple[Run, ...]
    """Those that this sequence is scored for: others are known, or asked with another sequence."""
    ids: Ids
    shift: int
    """How much further behind than in the sample a token stands in it."""
    over: asyncio.Event
    """Whoever wants one of its runs too waits for that."""

    @property
    def start(self) -> int:
        return self.runs[0].start + self.shift


class Plan(NamedTuple):
    jobs: list[Job]
    elsewhere: list[asyncio.Event]
    """What somebody else is scoring."""
    failures: list[Lesson]
    """Of what cannot even be sent."""
    held: dict[str, Lesson]
    """By key, what was scored for other sessions and is this one's too."""


class Tally(Value):
    """What became of some samples."""

    known: int
    """They were scored before."""
    scored: int
    failed: Mapping[str, str]
    """Why, by sample."""
    skipped: int


class Teachers:
    def __init__(self, store: Store, tutors: Sequence[Tutor], renderer: Renderer | None) -> None:
        """`renderer`: the student's; there is one where a teacher has another context."""
        self._store = store
        self._tutors = {tutor.facts.name: tutor for tutor in tutors}
        self._renderer = renderer
        self._under_way: dict[str, asyncio.Event] = {}
        """Runs that are being scored, by key, with their job's end."""

    def known(self) -> dict[str, Teacher]:
        """Those that can be asked, and those of whom the store has what they said."""
        stored = {teacher.name: teacher for teacher in self._store.teachers()}
        return stored | {name: tutor.facts for name, tutor in self._tutors.items()}

    async def taught(self, name: str, readings: Sequence[Reading]) -> list[Sample]:
        """The samples with this teacher's word; what is not known yet is asked, where it can be."""
        known = self.known()
        if name not in known:
            there = f"there is {', '.join(known)}" if known else "there is none"
            raise NotFound(f"there is no teacher {name}; {there}", code="teacher_not_found", param="teacher")
        if name in self._tutors:
            await self.score(name, readings)
        return [lessons.taught(one.sample, known[name], self._store.lessons) for one in readings]

    async def score(self, name: str, readings: Sequence[Reading], tell: Callable[[], None] = lambda: None) -> Tally:
        """Until nothing is missing but what cannot be had. `tell` is called with each sequence that came back."""
        tutor, failed = self._tutors[name], dict[str, str]()
        if tutor.facts not in self._store.teachers():
            await self._store.commit([tutor.facts])
        skipped = {id(one) for one in readings if _skipped(one.sample)}
        left = [one for one in readings if id(one) not in skipped]
        lacked = set[str]()
        while True:
            plan = self._planned(tutor, left, failed)
            lacked |= {job.reading.sample.id for job in plan.jobs}
            await self._work(tutor, plan, failed, tell)
            if not plan.jobs and not plan.elsewhere:
                break
            for event in plan.elsewhere:
                await event.wait()
            left = [one for one in left if one.sample.id not in failed]
        scored = len(lacked - failed.keys())
        return Tally(len(readings) - len(skipped) - scored - len(failed), scored, failed, len(skipped))

    def usage(self, name: str) -> str:
        """What it cost so far, as the engine tells."""
        tutor = self._tutors[name]
        cached = "" if tutor.cached_tokens is None else f", {tutor.cached_tokens} of them in its cache already"
        return f"{tutor.tokens} tokens sent{cached}"

    async def close(self) -> None:
        for tutor in self._tutors.values():
            await tutor.close()

    # -- what is missing -----------------------------------------------------------------------------------

    def _planned(self, tutor: Tutor, readings: Sequence[Reading], failed: dict[str, str]) -> Plan:
        """One that cannot be scored is noted in `failed`. In the order in which they will be sent: a run that several
        share is asked with the first of them, which computes it in any case."""
        plan = Plan([], [], [], {})
        claimed: set[str] = set()
        for reading in sorted(readings, key=lambda one: sorting(one.sample.tokens)):
            try:
                asked = wanted(tutor.facts, reading.sample)
            except CallerError as error:
                failed[reading.sample.id] = error.message
                continue
            known = {**self._store.lessons(lessons.keys(asked)), **plan.held}
            shared = lessons.held(asked, known, reading.sample.session_id)
            plan.held.update((one.key, one) for one in shared if one.key not in self._under_way)
            runs = lessons.lacking(asked, known)
            plan.elsewhere.extend(self._under_way[run.key] for run in runs if run.key in self._under_way)
            mine = [run for run in runs if run.key not in self._under_way and run.key not in claimed]
            try:
                plan.jobs.extend([self._job(tutor, reading, asked, mine)] if mine else [])
                claimed |= {run.key for run in mine}
            except CallerError as error:
                failed[reading.sample.id] = error.message
                plan.failures.append(lessons.failure(asked, reading.sample.session_id, error.message))
        return plan

    def _job(self, tutor: Tutor, reading: Reading, asked: Wanted, runs: Sequence[Run]) -> Job:
        tokens = reading.sample.tokens
        before = Beginning(tokens[:0], 0)
        if tutor.facts.framing is not None:
            if self._renderer is None:
                raise ValueError(f"{tutor.facts.name} has another context, and there is no renderer to write it")
            before = beginning(reading, tutor.facts.framing, self._renderer, self._store.blob)
        ids = np.concatenate([before.ids, tokens[before.instead_of : runs[-1].end]])
        return Job(reading, asked, tuple(runs), ids, len(before.ids) - before.instead_of, asyncio.Event())

    # -- having it scored ----------------------------------------------------------------------------------

    async def _work(self, tutor: Tutor, plan: Plan, failed: dict[str, str], tell: Callable[[], None]) -> None:
        """Nothing is awaited between the plan and its place among what is under way: nobody else can plan the same."""

        async def one(place: int) -> None:
            job = plan.jobs[place]
            try:
                await self._store.commit(await _scored(tutor, job))
            except (CallerError, EngineError) as error:
                failed[job.reading.sample.id] = error.message
                await self._store.commit([lessons.failure(job.asked, job.reading.sample.session_id, error.message)])
            finally:
                self._release(job)
            tell()

        self._under_way |= {run.key: job.over for job in plan.jobs for run in job.runs}
        try:
            if noted := [*plan.failures, *plan.held.values()]:
                await self._store.commit(noted)
            await in_order([job.ids for job in plan.jobs], tutor.at_once, one)
        finally:
            for job in plan.jobs:
                self._release(job)

    def _release(self, job: Job) -> None:
        """Behind it somebody else may have taken up the same run: that is theirs."""
        for run in job.runs:
            if self._under_way.get(run.key) is job.over:
                del self._under_way[run.key]
        job.over.set()


async def _scored(tutor: Tutor, job: Job) -> list[Lesson]:
    scored = await tutor.score(job.ids, job.asked.top_k, job.start)
    return [*lessons.cut(scored, job.runs, job.shift, job.reading.sample.session_id)]


def _skipped(sample: Sample) -> bool:
    try:
        return overrides(sample).skip_teacher_top_k
    except CallerError:
        return False
