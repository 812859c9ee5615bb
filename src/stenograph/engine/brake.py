"""Whether an engine's generations go on: cleared for a change of weights, and set again behind it."""

from __future__ import annotations

import asyncio


class Brake:
    def __init__(self) -> None:
        self.free = asyncio.Event()
        """New generations may begin, and what was broken off may go on."""
        self.free.set()
        self.pulled = asyncio.Event()
        """What is under way has to break off, as soon as it can be continued from there."""
        self.idle = asyncio.Event()
        """Nothing is under way on the engine."""
        self.idle.set()
        self._under_way = 0

    async def freed(self) -> None:
        """In a loop: who is woken may find it closed again."""
        while not self.free.is_set():
            await self.free.wait()

    def begun(self) -> None:
        self._under_way += 1
        self.idle.clear()

    def ended(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self.idle.set()

    def close(self) -> None:
        self.free.clear()

    def pull(self) -> None:
        self.pulled.set()

    def release(self) -> None:
        self.pulled.clear()
        self.free.set()
