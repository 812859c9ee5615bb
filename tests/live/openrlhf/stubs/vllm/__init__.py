"""As much of vLLM as OpenRLHF's rollout actor asks for. Behind it is the scripted engine, with a log of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.core import NEUTRAL, Request, Sampling
from stenograph.engine.script import load
from stenograph.engine.scripted import ScriptedEngine
from stenograph.render.tokenizer import Tokenizer

__version__ = "0.29.0"
FAILS, SLOW = "[the engine fails]", "[the engine is slow]"
"""Words of a prompt, each answered so the first time that the prompt comes."""
SLOW_SECONDS = 0.5


@dataclass
class SamplingParams:
    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    max_tokens: int | None = 16
    min_tokens: int = 0
    stop: list[str] = field(default_factory=list)
    stop_token_ids: list[int] = field(default_factory=list)
    ignore_eos: bool = False
    logit_bias: dict[int, float] | None = None
    logprobs: int | None = None
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    include_stop_str_in_output: bool = False


def AsyncEngineArgs(**given: Any) -> SimpleNamespace:
    return SimpleNamespace(**given)


class AsyncLLMEngine:
    def __init__(self, engine: ScriptedEngine, tokenizer: Tokenizer) -> None:
        self.engine = engine
        self._tokenizer = tokenizer
        self._seen: set[bytes] = set()
        self.output_processor = SimpleNamespace(get_num_unfinished_requests=lambda: 0)

    @classmethod
    def from_engine_args(cls, args: Any) -> AsyncLLMEngine:
        tokenizer = load_tokenizer(load_model_files(args.model))
        return cls(ScriptedEngine(load(Path(args.script)), tokenizer, log=Path(args.log)), tokenizer)

    async def is_sleeping(self) -> bool:
        return False

    async def generate(self, prompt: Any, params: SamplingParams, request_id: str) -> AsyncGenerator[Any, None]:
        ids = np.array(prompt["prompt_token_ids"], np.int32)
        await self._mishap(ids)
        request = Request(request_id, "", ids, _sampling(params), top_logprobs=params.logprobs or 0)
        said = SimpleNamespace(token_ids=[], text="", logprobs=[], finish_reason=None, stop_reason=None)
        async for delta in self.engine.generate(request):
            said.token_ids += delta.ids.tolist()
            tops = delta.top or [()] * len(delta.ids)
            for id, logprob, top in zip(delta.ids.tolist(), delta.logprobs.tolist(), tops, strict=True):
                row = {one.token_id: one.logprob for one in top} | {id: logprob}
                said.logprobs.append({one: SimpleNamespace(logprob=value) for one, value in row.items()})
            if delta.finish:
                said.finish_reason, said.stop_reason = delta.finish.reason, delta.finish.stop
        if params.logprobs is None:
            said.logprobs = None
        yield SimpleNamespace(prompt_token_ids=ids.tolist(), outputs=[said])

    async def _mishap(self, ids: Any) -> None:
        text, first = self._tokenizer.decode(ids.tolist()), ids.tobytes() not in self._seen
        self._seen.add(ids.tobytes())
        if first and FAILS in text:
            raise RuntimeError("CUDA out of memory")
        if first and SLOW in text:
            await asyncio.sleep(SLOW_SECONDS)


def _sampling(params: SamplingParams) -> Sampling:
    given = {name: getattr(params, name) for name in NEUTRAL.__struct_fields__ if hasattr(params, name)}
    lists = {"stop": tuple(params.stop), "stop_token_ids": tuple(params.stop_token_ids)}
    return msgspec.structs.replace(
        NEUTRAL, **{**given, **lists, "top_k": max(params.top_k, 0), "logit_bias": params.logit_bias or {}}
    )
