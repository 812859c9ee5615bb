"""One request, however many times its engine was stopped under it: the same choices, their tokens contiguous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from enum import Enum, auto
from typing import TypeAlias

import msgspec

from stenograph.core import Delta, Finish, Request
from stenograph.engine.brake import Brake
from stenograph.engine.engine import Engine, Holding
from stenograph.engine.evidence import delta_from
from stenograph.engine.interleave import interleave
from stenograph.engine.rest import continues_alike, rest
from stenograph.errors import EngineError, EvidenceError
from stenograph.render.tokenizer import Tokenizer

LOOK_SECONDS = 0.2
"""Between two looks at an engine that somebody else holds."""


class Signal(Enum):
    OVER = auto()
    """One of the streams has ended."""
    BRAKE = auto()


Arrival: TypeAlias = Delta | Signal


class Generation:
    def __init__(self, engine: Engine, request: Request, brake: Brake, tokenizer: Tokenizer | None) -> None:
        self._engine = engine
        self._request = request
        self._brake = brake
        self._tokenizer = tokenizer
        self._sampled: list[list[int]] = [[] for _ in range(request.n)]
        self._open = set(range(request.n))
        """The choices without a finish."""
        self._aborted: list[Delta] = []
        """What the engine broke off by itself."""
        self._broken_off = False
        """The latest attempt was ended by us."""
        self._attempt = 0

    async def deltas(self) -> AsyncGenerator[Delta, None]:
        while self._open:
            await self._brake.freed()
            async with aclosing(self._attempted()) as deltas:
                async for delta in deltas:
                    yield delta
            if not (self._broken_off or await self._paused_by_engine()):
                for delta in self._aborted:
                    yield delta
                return
            for delta in self._used_up():
                yield delta
            self._aborted.clear()
            self._attempt += 1

    async def _attempted(self) -> AsyncGenerator[Delta, None]:
        """Until every choice has its finish, the engine stops, or the brake is pulled and all can go on later."""
        streams = list(self._streams())
        self._brake.begun()
        try:
            async with aclosing(interleave([*streams, self._bell()])) as arrivals:
                left = len(streams)
                async for arrival in arrivals:
                    if isinstance(arrival, Delta):
                        for delta in self._taken(arrival):
                            yield delta
                    left -= arrival is Signal.OVER
                    if not left or (self._brake.pulled.is_set() and self._can_go_on()):
                        break
                self._broken_off = left > 0
        except EngineError as error:
            if not self._lost_under_pause(error):
                raise
            self._broken_off = True
        finally:
            self._brake.ended()

    def _lost_under_pause(self, error: EngineError) -> bool:
        """A trainer may restart its engine for new weights, or hold it for longer than a connection lives."""
        return not self._brake.free.is_set() and not isinstance(error, EvidenceError) and self._can_go_on()

    def _streams(self) -> Iterator[AsyncGenerator[Arrival, None]]:
        if not any(self._sampled) and len(self._open) == self._request.n:
            again = f"{self._request.id}-{self._attempt}" if self._attempt else self._request.id
            yield _to_the_end(self._engine.generate(msgspec.structs.replace(self._request, id=again)), None)
            return
        for choice in sorted(self._open):
            request = rest(self._request, choice, self._sampled[choice], self._attempt)
            yield _to_the_end(self._engine.generate(request), choice)

    async def _bell(self) -> AsyncGenerator[Arrival, None]:
        await self._brake.pulled.wait()
        yield Signal.BRAKE

    def _taken(self, delta: Delta) -> Iterator[Delta]:
        """An abort is kept back: it may be the engine's pause, and then it is no finish. Its tokens are tokens, and
        what it says of those before stands (weights, experts): vLLM says so with the last of an answer alone."""
        if 0 <= delta.choice < len(self._sampled):
            self._sampled[delta.choice] += delta.ids.tolist()
        if delta.finish is None:
            yield delta
        elif delta.finish.reason != "abort":
            self._open.discard(delta.choice)
            yield delta
        else:
            if len(delta.ids) or delta.versions or delta.experts is not None:
                yield msgspec.structs.replace(delta, finish=None)
            self._aborted.append(delta_from(choice=delta.choice, ids=[], logprobs=[], finish=delta.finish))

    async def _paused_by_engine(self) -> bool:
        """It broke choices off because it was paused, by us or, as trainers do that know their engine, behind our back.
        Gone on with once it is let go. Any other abort is an abort."""
        if not self._aborted or not self._can_go_on():
            return False
        if not self._brake.free.is_set():
            return True
        if not isinstance(self._engine, Holding) or not await self._engine.held():
            return False
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not await self._engine.held():
                return True

    def _can_go_on(self) -> bool:
        sampling = self._request.sampling
        return all(continues_alike(sampling, self._sampled[choice], self._tokenizer) for choice in self._open)

    def _used_up(self) -> Iterator[Delta]:
        """A choice may be stopped with its last token already there."""
        for choice in sorted(self._open):
            if len(self._sampled[choice]) == self._request.sampling.max_tokens:
                self._open.discard(choice)
                yield delta_from(choice=choice, ids=[], logprobs=[], finish=Finish("length"))


async def _to_the_end(deltas: AsyncGenerator[Delta, None], choice: int | None) -> AsyncGenerator[Arrival, None]:
    """`choice`: whose rest this is. What it found in the engine's cache is then no news of the prompt."""
    async with aclosing(deltas):
        async for delta in deltas:
            yield delta if choice is None else msgspec.structs.replace(delta, choice=choice, cached_tokens=None)
    yield Signal.OVER
