"""From settings to teachers at work: engine connected, its tokenizer proven to be the student's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from stenograph.config import TeacherSpec, engine_spec
from stenograph.core import Conversation, EngineInfo, Teacher
from stenograph.engine.scoring import Scoring
from stenograph.errors import ConfigError
from stenograph.furnish import Loaded, connected, model_files
from stenograph.render.renderer import Renderer
from stenograph.render.tokenizer import Tokenizer
from stenograph.store.store import Store
from stenograph.teacher.alike import differences
from stenograph.teacher.teachers import Teachers
from stenograph.teacher.tutor import Tutor

logger = logging.getLogger("stenograph")
AT_ONCE = {"torch": 1}
"""In this process one sequence at a time, in order, so that each finds what it shares with the one before it."""
AT_ONCE_ELSEWHERE = 8


class Student:
    """Whose samples are scored."""

    def __init__(self, tokenizer: Tokenizer, renderer: Callable[[], Renderer]) -> None:
        """`renderer` is asked for where a teacher has another context: a template is needed for nothing else."""
        self.tokenizer = tokenizer
        self.renderer = renderer


OfTeacher: TypeAlias = Callable[[Loaded], Student]
"""The student, for whoever has to look at the teacher's own files to know it."""


async def hired(specs: Sequence[TeacherSpec], student: OfTeacher, store: Store) -> Teachers:
    """All of them, or a `ConfigError` that says what is wrong with the first that cannot be had."""
    tutors: list[Tutor] = []
    renderer: Renderer | None = None
    try:
        for spec in specs:
            tutor, pupil = await tutored(spec, student)
            tutors.append(tutor)
            renderer = pupil.renderer() if spec.framing else renderer
    except BaseException:
        for tutor in tutors:
            await tutor.close()
        raise
    return Teachers(store, tutors, renderer)


async def tutored(spec: TeacherSpec, student: OfTeacher) -> tuple[Tutor, Student]:
    """One of them."""
    where = engine_spec(spec.engine)
    engine, info, loaded = await connected(where, spec.tokenizer, spec.name)
    try:
        if not isinstance(engine, Scoring):
            raise ConfigError(f"teacher {spec.name}: {where.kind} cannot score; vllm, sglang and torch can")
        if loaded is None and spec.tokenizer is not None:
            loaded = await asyncio.to_thread(model_files, spec.tokenizer)  # which says why it cannot be had
        tokenizer, pupil = await asyncio.to_thread(_checked, spec, info, loaded, student)
    except BaseException:
        await engine.close()
        raise
    at_once = spec.in_flight or AT_ONCE.get(where.kind, AT_ONCE_ELSEWHERE)
    vocab_size = info.vocab_size or tokenizer.vocab_size
    tutor = Tutor(_facts(spec, info, pupil), engine, info, vocab_size, at_once=at_once)
    logger.info("teacher %s is %s: context of %d tokens", spec.name, info.model, info.max_model_len)
    return tutor, pupil


def _checked(
    spec: TeacherSpec, info: EngineInfo, loaded: Loaded | None, student: OfTeacher
) -> tuple[Tokenizer, Student]:
    if loaded is None:
        detail = f"its engine serves {info.model}, and that names no tokenizer here"
        raise ConfigError(f"teacher {spec.name}: {detail}: give its `tokenizer`, a folder or a hub name")
    if spec.top_k > info.max_top_logprobs:
        raise ConfigError(
            f"teacher {spec.name}: its engine tells {info.max_top_logprobs} alternatives, not {spec.top_k}"
        )
    pupil = student(loaded)
    if found := differences(pupil.tokenizer, loaded[1]):
        raise ConfigError(f"teacher {spec.name}: its tokenizer is not the student's: {'; '.join(found)}")
    return loaded[1], pupil


def _facts(spec: TeacherSpec, info: EngineInfo, pupil: Student) -> Teacher:
    template = pupil.renderer().family(Conversation(())).template.hash if spec.framing else ""
    return Teacher(
        name=spec.name,
        model=info.model,
        weight=spec.weight,
        top_k=spec.top_k,
        positions=spec.positions,
        framing=spec.framing,
        template_hash=template,
    )
