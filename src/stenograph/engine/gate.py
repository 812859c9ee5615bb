"""How much an engine samples at once, and who is next: sessions in turn, so that none starves the others."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from stenograph.core import Request
from stenograph.errors import Overloaded


class _Waiter:
    def __init__(self, weight: int) -> None:
        self.weight = weight
        self.admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Gate:
    def __init__(self, width: int, room: int) -> None:
        """`width`: choices that may be under way. `room`: calls that may wait; any more are refused."""
        self._width = width
        self._room = room
        self._queues: OrderedDict[str, deque[_Waiter]] = OrderedDict()
        """By session, in the order in which they are served next. None is empty."""
        self.running = 0

    @property
    def waiting(self) -> int:
        return sum(map(len, self._queues.values()))

    @asynccontextmanager
    async def passage(self, request: Request) -> AsyncGenerator[None, None]:
        """A call with more choices than the gate is wide passes alone."""
        weight = min(request.n, self._width)
        await self._enter(request.session_id, weight)
        try:
            yield
        finally:
            self._leave(weight)

    async def _enter(self, session_id: str, weight: int) -> None:
        if not self._queues and self._fits(weight):
            self.running += weight
            return
        waiting = self.waiting
        if waiting >= self._room:
            raise Overloaded(f"{waiting} calls wait for this engine already, which is all that may")
        waiter = _Waiter(weight)
        self._queues.setdefault(session_id, deque()).append(waiter)
        try:
            await waiter.admitted
        except asyncio.CancelledError:
            if waiter.admitted.cancelled():
                self._forget(session_id, waiter)
            else:
                self._leave(weight)
            raise

    def _leave(self, weight: int) -> None:
        self.running -= weight
        self._admit()

    def _admit(self) -> None:
        """The oldest call of the session whose turn it is. It is not overtaken, however many choices it has."""
        while self._queues:
            session_id, queue = next(iter(self._queues.items()))
            if not self._fits(queue[0].weight):
                return
            waiter = queue.popleft()
            del self._queues[session_id]
            if queue:
                self._queues[session_id] = queue
            self.running += waiter.weight
            waiter.admitted.set_result(None)

    def _forget(self, session_id: str, waiter: _Waiter) -> None:
        queue = self._queues[session_id]
        queue.remove(waiter)
        if not queue:
            del self._queues[session_id]
        self._admit()

    def _fits(self, weight: int) -> bool:
        return self.running + weight <= self._width
