"""A trainer's own sampler, as `GivenEngine` takes it: the scripted engine without any wire."""

from __future__ import annotations

import itertools
from contextlib import aclosing
from typing import Any

import msgspec
import numpy as np

from stenograph.core import Finish, Request, Sampling
from stenograph.engine.given import Answer
from stenograph.engine.scripted import ScriptedEngine


class Mine:
    def __init__(self, engine: ScriptedEngine) -> None:
        self._engine = engine
        self._numbers = itertools.count()

    async def generate(self, prompt: list[int], sampling: dict[str, Any]) -> Answer:
        asked = Request(
            f"mine-{next(self._numbers)}", "", np.array(prompt, np.int32), msgspec.convert(sampling, Sampling)
        )
        ids: list[Any] = []
        logprobs: list[Any] = []
        finish: Finish | None = None
        async with aclosing(self._engine.play(self._engine.admit(asked))) as raws:
            async for raw in raws:
                ids += raw.ids
                logprobs += raw.logprobs
                finish = raw.finish or finish
        return {
            "token_ids": ids,
            "logprobs": logprobs,
            "finish_reason": finish.reason if finish else "",
            "stop_reason": finish.stop if finish else None,
            "weight_version": self._engine.weight_version,
        }
