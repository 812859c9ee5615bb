"""What an engine scored becomes lessons, run by run, and lessons become a sample's teaching. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec
import numpy as np

from stenograph.core import Lesson, Sample, Teacher, TeacherInfo, Teaching
from stenograph.engine.scoring import Scored
from stenograph.errors import CallerError
from stenograph.teacher.wanted import Run, Wanted, overrides, wanted

Recall: TypeAlias = Callable[[Iterable[str]], Mapping[str, Lesson]]
"""A store's `lessons`."""
UNKNOWN = -1
NOT_SCORED = "not scored yet"
SKIPPED = "its group is left out (skip_teacher_top_k)"


def cut(scored: Scored, runs: Iterable[Run], shift: int, session_id: str) -> Iterator[Lesson]:
    """`shift`: how much further behind than in the sample a token stands in what was scored."""
    top_k = scored.top_ids.shape[1]
    for run in runs:
        rows = slice(run.start + shift - scored.start, run.end + shift - scored.start)
        yield Lesson(
            key=run.key,
            session_id=session_id,
            top_k=top_k,
            token_ids=scored.top_ids[rows].reshape(-1),
            logprobs=scored.top_logprobs[rows].reshape(-1),
            token_logprobs=scored.logprobs[rows],
        )


def failure(asked: Wanted, session_id: str, error: str) -> Lesson:
    """That the sequence could not be scored. It answers nothing: whoever asks again has it tried again."""
    none = np.zeros(0, np.float32)
    return Lesson(
        key=asked.whole,
        session_id=session_id,
        top_k=0,
        token_ids=np.zeros(0, np.int32),
        logprobs=none,
        token_logprobs=none,
        error=error,
    )


def lacking(asked: Wanted, known: Mapping[str, Lesson]) -> list[Run]:
    """The runs that nobody has scored yet, or with fewer alternatives than are wanted."""
    return [run for run in asked.runs if run.key not in known or known[run.key].top_k < asked.top_k]


def held(asked: Wanted, known: Mapping[str, Lesson], session_id: str) -> Iterator[Lesson]:
    """What was scored for others, so that it stays with this session when they go."""
    for run in asked.runs:
        lesson = known.get(run.key)
        if lesson is not None and session_id not in (lesson.session_id, *lesson.also):
            yield msgspec.structs.replace(lesson, also=(*lesson.also, session_id))


def keys(asked: Wanted) -> list[str]:
    """Of all that may be known of it."""
    return [asked.whole, *(run.key for run in asked.runs)]


def teaching(sample: Sample, asked: Wanted, known: Mapping[str, Lesson]) -> Teaching:
    """All runs are known. What they leave out is unknown, and says so."""
    length, top_k = len(sample.tokens), asked.top_k
    token_ids = np.full((length, top_k), UNKNOWN, np.int32)
    logprobs, token_logprobs = np.zeros((length, top_k), np.float32), np.zeros(length, np.float32)
    for run in asked.runs:
        lesson, rows = known[run.key], slice(run.start, run.end)
        token_ids[rows] = lesson.token_ids.reshape(run.size, lesson.top_k)[:, :top_k]
        logprobs[rows] = lesson.logprobs.reshape(run.size, lesson.top_k)[:, :top_k]
        token_logprobs[rows] = lesson.token_logprobs
    for array in (token_ids, logprobs, token_logprobs):
        array.setflags(write=False)
    return Teaching(top_k=top_k, token_ids=token_ids, logprobs=logprobs, token_logprobs=token_logprobs)


def taught(sample: Sample, teacher: Teacher, recall: Recall) -> Sample:
    """The sample with what is on record of this teacher's, or with why nothing is."""
    try:
        asked = wanted(teacher, sample)
        if overrides(sample).skip_teacher_top_k:
            return _with(sample, teacher, None, SKIPPED)
    except CallerError as error:
        return _with(sample, teacher, None, error.message)
    known = recall(keys(asked))
    if lacking(asked, known):
        noted = known.get(asked.whole)
        return _with(sample, teacher, None, (noted and noted.error) or NOT_SCORED)
    return _with(sample, teacher, teaching(sample, asked, known), None)


def _with(sample: Sample, teacher: Teacher, teaching: Teaching | None, error: str | None) -> Sample:
    teachings = {**(sample.teachers or {}), **({teacher.name: teaching} if teaching else {})}
    info = TeacherInfo(model=teacher.model, weight=teacher.weight, error=error)
    return msgspec.structs.replace(
        sample, teachers=teachings, teacher_info={**(sample.teacher_info or {}), teacher.name: info}
    )
