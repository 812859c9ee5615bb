"""A trainer's own sampler, as `GivenEngine` takes it: the scripted engine without any wire."""

from __future__ import annotations

import itertools
from contextlib import aclosing
from typing import Any

import msgspec
import numpy as np

from stenograph.core import Finish, Request, Sampling
from stenograph.engine.evidence import best_first
from stenograph.engine.given import Answer
from stenograph.engine.scripted import ScriptedEngine


class Mine:
    def __init__(self, engine: ScriptedEngine) -> None:
        self._engine = engine
        self._numbers = itertools.count()

    async def generate(self, prompt: list[int], sampling: dict[str, Any]) -> Answer:
        top = sampling["top_logprobs"]
        wanted = msgspec.convert(sampling, Sampling)
        asked = Request(f"mine-{next(self._numbers)}", "", np.array(prompt, np.int32), wanted, top_logprobs=top)
        ids: list[Any] = []
        logprobs: list[Any] = []
        rows: list[list[tuple[int, float]]] = []
        finish: Finish | None = None
        async with aclosing(self._engine.play(self._engine.admit(asked))) as raws:
            async for raw in raws:
                ids += raw.ids
                logprobs += raw.logprobs
                rows += [best_first(row, top) for row in raw.rows]
                finish = raw.finish or finish
        return {
            "token_ids": ids,
            "logprobs": logprobs,
            "top_logprobs": rows if top else None,
            "finish_reason": finish.reason if finish else "",
            "stop_reason": finish.stop if finish else None,
            "weight_version": self._engine.weight_version,
        }
