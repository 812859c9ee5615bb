"""All the engines as one: where a request goes, and where it goes instead when an engine is not there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from stenograph.core import Delta, EngineInfo, Request
from stenograph.engine.engine import Engine
from stenograph.engine.gate import Gate
from stenograph.engine.member import Member
from stenograph.errors import ConfigError, EngineError, EngineUnavailable, EvidenceError, Overloaded
from stenograph.render.tokenizer import Tokenizer

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""Between two looks at who is well."""
WAITING = 4096
"""Calls that may wait for one engine. Beyond, a caller had better be told (429)."""


class Pool:
    def __init__(self, engines: Sequence[Engine], in_flight: int) -> None:
        """`in_flight`: choices that one engine samples at once."""
        self._engines = engines
        self._in_flight = in_flight
        self.members: list[Member] = []
        self._looking: asyncio.Task[None] | None = None
        self.tokenizer: Tokenizer | None = None
        """Known once the engines have said what they serve. Until then nothing with a stop string is broken off."""

    async def start(self) -> EngineInfo:
        """All of them, or an error that says which one is not there."""
        infos = await asyncio.gather(*(engine.start() for engine in self._engines))
        merged = agreed(infos)
        self.members = [
            Member(engine, info, Gate(self._in_flight, WAITING))
            for engine, info in zip(self._engines, infos, strict=True)
        ]
        self._looking = asyncio.create_task(self._look())
        return merged

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Elsewhere, where an engine fails before its first token: until then nobody has seen anything of it."""
        candidates = list(self.members)
        while True:
            member = _best(candidates, request)
            candidates.remove(member)
            begun = False
            try:
                async with aclosing(member.generate(request, self.tokenizer)) as deltas:
                    async for delta in deltas:
                        begun = True
                        yield delta
                return
            except (EngineError, Overloaded) as error:
                if isinstance(error, EngineUnavailable):
                    member.up = False
                if begun or not candidates or isinstance(error, EvidenceError):
                    raise
                log.warning("request %s goes elsewhere: %s", request.id, error.message)

    async def healthy(self) -> bool:
        """One is enough: its kind of token is all that is needed."""
        return any(await asyncio.gather(*(member.look() for member in self.members)))

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        await asyncio.gather(*(member.close() for member in self.members))
        await asyncio.gather(*(engine.close() for engine in self._engines))

    async def pause(self) -> None:
        await asyncio.gather(*(member.pause() for member in self.members))

    async def resume(self) -> None:
        await asyncio.gather(*(member.resume() for member in self.members))

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for member in self.members:
                before = member.up
                if await member.look() != before:
                    log.warning("engine %s %s", member.info.name, "is back" if member.up else "does not answer")


def _best(candidates: Sequence[Member], request: Request) -> Member:
    """Who is well; of those, who has the session's prefix in its cache; of those, who has the least to do."""
    return min(
        candidates,
        key=lambda member: (
            not member.up,
            member.info.name != request.engine,
            request.session_id not in member.sessions,
            member.load,
            member.taken,
        ),
    )


def agreed(infos: Sequence[EngineInfo]) -> EngineInfo:
    """What holds of every member, so that a session may move to any of them."""
    first = infos[0]
    for info in infos[1:]:
        if info.model != first.model:
            raise ConfigError(
                f"{first.name} serves {first.model} and {info.name} serves {info.model}: engines of one gateway serve "
                "one model, under one name"
            )
        if info.logprob_kind != first.logprob_kind:
            raise ConfigError(
                f"{first.name} reports logprobs that are {first.logprob_kind} and {info.name} some that are "
                f"{info.logprob_kind}: ratios of the two mean nothing, so they cannot be mixed"
            )
    sizes = [info.vocab_size for info in infos if info.vocab_size is not None]
    return msgspec.structs.replace(
        first,
        max_model_len=min(info.max_model_len for info in infos),
        supports=frozenset.intersection(*(info.supports for info in infos)),
        guides=frozenset.intersection(*(info.guides for info in infos)),
        max_top_logprobs=min(info.max_top_logprobs for info in infos),
        vocab_size=min(sizes, default=None),
    )
