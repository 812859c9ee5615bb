"""One engine of a pool: what it is, how busy it is, and whether it is to be stopped."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress

import msgspec

from stenograph.core import Delta, EngineInfo, Request
from stenograph.engine.brake import Brake
from stenograph.engine.engine import Engine, Holding
from stenograph.engine.gate import Gate
from stenograph.engine.generation import Generation
from stenograph.errors import EngineError, EngineUnavailable
from stenograph.render.tokenizer import Tokenizer

log = logging.getLogger(__name__)

PROBE_SECONDS = 5.0
"""An engine that takes longer to say that it is well is not."""


class Member:
    def __init__(self, engine: Engine, info: EngineInfo, gate: Gate) -> None:
        self.engine = engine
        self.info = info
        self.gate = gate
        self.up = True
        self.sessions: Counter[str] = Counter()
        """Calls under way, by session."""
        self.taken = 0
        """Calls that it was ever given."""
        self._brake = Brake()
        self._switching = asyncio.Lock()

    @property
    def load(self) -> int:
        return self.gate.running + self.gate.waiting

    @property
    def paused(self) -> bool:
        return not self._brake.free.is_set()

    async def generate(self, request: Request, tokenizer: Tokenizer | None) -> AsyncGenerator[Delta, None]:
        self.sessions[request.session_id] += 1
        self.taken += 1
        try:
            async with self.gate.passage(request):
                generation = Generation(self.engine, request, self._brake, tokenizer)
                async with aclosing(generation.deltas()) as deltas:
                    async for delta in deltas:
                        yield msgspec.structs.replace(delta, by=self.info)
        finally:
            self.sessions[request.session_id] -= 1
            if not self.sessions[request.session_id]:
                del self.sessions[request.session_id]

    async def look(self) -> bool:
        """Whether it answers. One that holds still for new weights need not. What an engine of somebody's own raises
        here is an answer, too: nobody would look again if it were let through."""
        if not self.paused:
            try:
                self.up = await asyncio.wait_for(self.engine.healthy(), PROBE_SECONDS)
            except TimeoutError:
                self.up = False
            except Exception as error:
                log.warning("engine %s cannot say that it is well: %r", self.info.name, error)
                self.up = False
        return self.up

    async def pause(self) -> None:
        """Returns once nothing is sampled any more: held by the engine itself, broken off, or, where neither can be
        without a difference, ended."""
        self._brake.close()
        async with self._switching:
            if await self._held():
                return
        if self.paused:
            self._brake.pull()
            idle, free = (asyncio.ensure_future(event.wait()) for event in (self._brake.idle, self._brake.free))
            await asyncio.wait((idle, free), return_when=asyncio.FIRST_COMPLETED)
            idle.cancel()
            free.cancel()

    async def resume(self) -> None:
        """Also where the engine fails at it: what waits here would wait for ever, and there are others to go to."""
        try:
            async with self._switching:
                if isinstance(self.engine, Holding):
                    with self._absence():
                        await self.engine.release()
        finally:
            self._brake.release()

    async def close(self) -> None:
        """An engine that is still held is let go: when this process is gone, nobody is left to do it."""
        if self.paused:
            with suppress(EngineError):
                await self.resume()

    async def _held(self) -> bool:
        if isinstance(self.engine, Holding):
            with self._absence():
                return await self.engine.hold()
        return False

    @contextmanager
    def _absence(self) -> Iterator[None]:
        """An engine that is not there samples nothing, and is no reason for the others to wait."""
        try:
            yield
        except EngineUnavailable:
            self.up = False
