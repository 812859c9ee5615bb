"""A model whose next token follows from the ids before it alone: stopped anywhere and continued, it says the same."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, Sequence

import msgspec

from stenograph.core import Delta, EngineInfo, Finish, Request, Sampling, VersionRun
from stenograph.engine.evidence import delta_from

VOCAB = 64
EOS = 7


def info(name: str = "chain-0", **facts: object) -> EngineInfo:
    known: dict[str, object] = {"kind": "chain", "model": "chain", "max_model_len": 512, "logprob_kind": "raw"}
    known |= {"supports": frozenset(Sampling.__struct_fields__), "vocab_size": VOCAB, **facts}
    return EngineInfo(name=name, **known)  # type: ignore[arg-type]


def following(ids: Sequence[int]) -> tuple[int, float]:
    """The next id, and its logprob."""
    number = zlib.crc32(bytes(id % 256 for id in ids))
    return number % VOCAB, -(number % 1009) / 256


def said(prompt: Sequence[int], limit: int) -> tuple[list[int], list[float], str]:
    """What it says when nobody stops it."""
    ids: list[int] = []
    logprobs: list[float] = []
    while len(ids) < limit:
        id, logprob = following([*prompt, *ids])
        ids.append(id)
        logprobs.append(logprob)
        if id == EOS:
            return ids, logprobs, "stop"
    return ids, logprobs, "length"


class Chain:
    def __init__(self, name: str = "chain-0", **facts: object) -> None:
        self.info = info(name, **facts)
        self.requests: list[Request] = []
        self.under_way = 0
        self.well = True
        self.failure: Exception | None = None
        """Raised at the next token, also before the first."""
        self.patience = asyncio.Event()
        """While it is cleared nothing is sampled."""
        self.patience.set()
        self.closed = False

    async def start(self) -> EngineInfo:
        return self.info

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        self.requests.append(request)
        self.under_way += 1
        try:
            limit = request.sampling.max_tokens
            assert limit
            ids, logprobs, reason = said(request.prompt.tolist(), limit)
            for place, (id, logprob) in enumerate(zip(ids, logprobs, strict=True)):
                await asyncio.sleep(0)
                await self.patience.wait()
                if self.failure is not None:
                    raise self.failure
                for choice in range(request.n):
                    finish = self.finish(reason) if place == len(ids) - 1 else None
                    yield delta_from(choice=choice, ids=[id], logprobs=[logprob], finish=finish)
            yield delta_from(choice=0, ids=[], logprobs=[], cached_tokens=len(request.prompt) // 2)
        finally:
            self.under_way -= 1

    def finish(self, reason: str) -> Finish:
        return Finish("stop") if reason == "stop" else Finish("length")

    async def healthy(self) -> bool:
        return self.well

    async def close(self) -> None:
        self.closed = True


class Halting(Chain):
    """Somebody pauses it behind our back: what is under way ends in an abort, and nothing begins meanwhile. Of its
    weights it speaks at an answer's end, as vLLM does."""

    version = "1"

    def __init__(self) -> None:
        super().__init__()
        self.halted = False
        self.holds_itself = False
        self.looked = asyncio.Event()
        """Somebody asked whether it is held."""

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        counts = [0] * request.n
        async for delta in super().generate(request):
            if self.halted and delta.finish is None and len(delta.ids):
                for choice, count in enumerate(counts):
                    yield self._told(delta_from(choice=choice, ids=[], logprobs=[], finish=Finish("abort")), count)
                return
            counts[delta.choice] += len(delta.ids)
            yield self._told(delta, counts[delta.choice])

    def _told(self, delta: Delta, tokens: int) -> Delta:
        runs = (VersionRun(self.version, tokens),) if delta.finish and tokens else ()
        return msgspec.structs.replace(delta, versions=runs)

    async def hold(self) -> bool:
        if self.holds_itself:
            self.patience.clear()
        return self.holds_itself

    async def release(self) -> None:
        self.patience.set()

    async def held(self) -> bool:
        self.looked.set()
        return self.halted
