"""Atropos environments whose groups carry a teacher's word: what its `TeacherDistillationEnv` was for.

    from atroposlib.envs.base import BaseEnv, BaseEnvConfig
    from stenograph.integrations.atropos.teacher_env import TeacherDistillation, teacher_config

    class MyEnv(TeacherDistillation, BaseEnv):
        env_config_cls = teacher_config(BaseEnvConfig)      # teacher_enabled, teacher_server, teacher_top_k

`distill_token_ids` and `distill_logprobs` are `[sequence][position][k]`, rectangular, a row a token: row i is of the
distribution that predicts token i, and row 0 says that it knows nothing (-1 and 0.0), as do all rows of a sequence that
could not be scored. The others keep theirs. The teacher's logprobs of the tokens themselves stand in
`overrides[sequence]["stenograph"]["teacher_logprobs"]`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np

from stenograph.assets.trainers import brought
from stenograph.config import Settings, TeacherSpec
from stenograph.core import JSON, Teaching
from stenograph.errors import ConfigError
from stenograph.export.formats.atropos import tables
from stenograph.faculty import Student, tutored
from stenograph.furnish import renderer_of
from stenograph.teacher.tutor import Tutor
from stenograph.teacher.wanted import OVERRIDES, Overrides

log = logging.getLogger("stenograph")
Group: TypeAlias = MutableMapping[str, Any]
NAME = "teacher"
OFF = 0
"""A `teacher_top_k` up to this asks for nothing."""


def teacher_config(base: type) -> type:
    """An environment's config (pydantic's) with the fields of its teacher. `teacher_server`: `KIND=WHERE`."""
    types = {"teacher_enabled": bool, "teacher_server": str, "teacher_top_k": int}
    values = {"teacher_enabled": False, "teacher_server": "", "teacher_top_k": 1}
    return type("TeacherDistillationConfig", (base,), {"__module__": __name__, "__annotations__": types, **values})


class TeacherDistillation:
    """Stands before `BaseEnv` among the bases of an environment."""

    config: Any
    tokenizer: Any
    _teacher: asyncio.Task[Tutor] | None = None

    async def env_manager(self) -> Any:
        return await self._taught(super().env_manager)  # type: ignore[misc]

    async def process_manager(self) -> Any:
        return await self._taught(super().process_manager)  # type: ignore[misc]

    async def _taught(self, manage: Callable[[], Awaitable[Any]]) -> Any:
        """A teacher of other tokens is refused here, before any rollout."""
        await self._tutor()
        try:
            return await manage()
        finally:
            await self.close_teacher()

    async def handle_send_to_api(
        self,
        scored_data: Group | Sequence[Group | None] | None,
        item: Any = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> Any:
        groups = [scored_data] if scored_data is None or isinstance(scored_data, Mapping) else scored_data
        for group in groups:
            if group is not None and group.get("tokens"):
                await self.teach(group)
        return await super().handle_send_to_api(  # type: ignore[misc]
            scored_data,
            item,
            do_send_to_api=do_send_to_api,
            abort_on_any_max_length_exceeded=abort_on_any_max_length_exceeded,
        )

    async def teach(self, group: Group) -> None:
        """Puts the teacher's word into a group."""
        said = _overrides(group)
        top_k = self.config.teacher_top_k if said.teacher_top_k is None else said.teacher_top_k
        tutor = await self._tutor()
        if tutor is None or said.skip_teacher_top_k or top_k <= OFF:
            group["distill_token_ids"] = group["distill_logprobs"] = None
            return
        sequences = [np.array(tokens, np.int32) for tokens in group["tokens"]]
        _attach(group, await tutor.read(sequences, top_k), top_k)

    async def close_teacher(self) -> None:
        teacher, self._teacher = self._teacher, None
        if teacher is not None:
            await (await teacher).close()

    async def _tutor(self) -> Tutor | None:
        if not self.config.teacher_enabled:
            return None
        if self._teacher is None:
            self._teacher = asyncio.ensure_future(self._hired())
        return await asyncio.shield(self._teacher)

    async def _hired(self) -> Tutor:
        if not self.config.teacher_server:
            raise ConfigError("teacher_enabled wants a teacher_server: vllm=URL, sglang=URL or torch=FOLDER")
        own = await asyncio.to_thread(brought, self.tokenizer)
        student = Student(own.tokenizer, lambda: renderer_of(Settings(), own.files, own.tokenizer, own.template))
        spec = TeacherSpec(name=NAME, engine=self.config.teacher_server, top_k=max(self.config.teacher_top_k, OFF))
        tutor, _ = await tutored(spec, lambda _: student)
        return tutor


def _overrides(group: Group) -> Overrides:
    """A group is sent without a teacher's word rather than not at all."""
    try:
        return msgspec.convert(group.get(OVERRIDES) or {}, Overrides)
    except msgspec.ValidationError as error:
        log.warning("teacher: a group is left out: %s: %s", OVERRIDES, error)
        return Overrides(skip_teacher_top_k=True)


def _attach(group: Group, found: Sequence[Teaching | str], top_k: int) -> None:
    rows = [
        tables(None if isinstance(one, str) else one, len(tokens), top_k)
        for one, tokens in zip(found, group["tokens"], strict=True)
    ]
    group["distill_token_ids"] = [ids for ids, _ in rows]
    group["distill_logprobs"] = [logprobs for _, logprobs in rows]
    overrides = group.get("overrides") or [{} for _ in found]
    group["overrides"] = [
        {**(own or {}), "stenograph": {**(own or {}).get("stenograph", {}), **_told(one)}}
        for own, one in zip(overrides, found, strict=True)
    ]


def _told(one: Teaching | str) -> dict[str, JSON]:
    if isinstance(one, str):
        log.warning("teacher: a sequence could not be scored: %s", one)
        return {"teacher_error": one}
    return {"teacher_logprobs": one.token_logprobs.tolist()}
