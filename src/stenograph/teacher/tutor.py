"""One teacher at work: its engine, how much it is asked at once, and how often again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from stenograph.core import EngineInfo, Ids, Teacher, Teaching
from stenograph.engine.engine import Engine
from stenograph.engine.scoring import FIRST, Scored, Scoring
from stenograph.errors import CallerError, EngineError, Overloaded
from stenograph.teacher.lessons import UNKNOWN
from stenograph.teacher.order import in_order

PAUSES = (0.5, 2.0, 8.0)
"""Seconds before a sequence is tried again."""
PASSING = (EngineError, Overloaded)
"""What may be otherwise the next time."""


class ScoringEngine(Engine, Scoring, Protocol): ...


class Tutor:
    def __init__(
        self,
        facts: Teacher,
        engine: ScoringEngine,
        info: EngineInfo,
        vocab_size: int,
        *,
        at_once: int,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        """`vocab_size`: ids at or above it are never sent. `at_once`: sequences that the engine has at a time."""
        self.facts = facts
        self.at_once = at_once
        self._engine = engine
        self._info = info
        self._vocab_size = vocab_size
        self._pauses = pauses
        self.tokens = 0
        """Of all sequences that were scored."""
        self.cached_tokens: int | None = None
        """Those of them that the engine had already; None: it does not say."""

    async def score(self, ids: Ids, top_k: int, start: int = FIRST) -> Scored:
        """Tried again where the engine failed; raises a `CallerError` where that is of no use."""
        self._check(ids, top_k)
        for pause in self._pauses:
            try:
                return self._counted(ids, await self._engine.score(ids, top_k, start))
            except PASSING:
                await asyncio.sleep(pause)
        return self._counted(ids, await self._engine.score(ids, top_k, start))

    async def read(self, sequences: Sequence[Ids], top_k: int) -> list[Teaching | str]:
        """Bare sequences, of which nothing is recorded: the teaching of each, all positions, or why there is none."""
        found: list[Teaching | str] = [""] * len(sequences)

        async def one(place: int) -> None:
            try:
                found[place] = await self._reading(sequences[place], top_k)
            except (CallerError, EngineError) as error:
                found[place] = error.message

        await in_order(sequences, self.at_once, one)
        return found

    async def _reading(self, ids: Ids, top_k: int) -> Teaching:
        unknown = np.full((min(len(ids), FIRST), top_k), UNKNOWN, np.int32)
        zeros = np.zeros(unknown.shape, np.float32)
        first = np.zeros(len(unknown), np.float32)
        if len(ids) <= FIRST:
            return Teaching(top_k=top_k, token_ids=unknown, logprobs=zeros, token_logprobs=first)
        scored = await self.score(ids, top_k)
        return Teaching(
            top_k=top_k,
            token_ids=np.concatenate([unknown, scored.top_ids]),
            logprobs=np.concatenate([zeros, scored.top_logprobs]),
            token_logprobs=np.concatenate([first, scored.logprobs]),
        )

    async def close(self) -> None:
        await self._engine.close()

    def _check(self, ids: Ids, top_k: int) -> None:
        """One token is left for the engine to sample: there are engines that have to."""
        if len(ids) >= self._info.max_model_len:
            raise CallerError(f"it has {len(ids)} tokens, and the teacher's context holds {self._info.max_model_len}")
        if int(ids.max()) >= self._vocab_size:
            raise CallerError(f"it has token {int(ids.max())}, which the teacher's vocabulary does not have")
        if top_k > self._info.max_top_logprobs:
            raise CallerError(f"{top_k} alternatives were wanted, and the teacher tells {self._info.max_top_logprobs}")

    def _counted(self, ids: Ids, scored: Scored) -> Scored:
        self.tokens += len(ids)
        if scored.cached_tokens is not None:
            self.cached_tokens = (self.cached_tokens or 0) + scored.cached_tokens
        return scored
