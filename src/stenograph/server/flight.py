"""A call under way, apart from the connections that wait for it.

A caller may go away and come back: an SDK retries after its own timeout with the very same call. So a call runs on its
own; connections listen to it. When the last one has left, it goes on for the grace period, and is then aborted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from stenograph.core import Event
from stenograph.errors import CallerError, InternalError, StenographError
from stenograph.turn import Ticket

log = logging.getLogger("stenograph")
Work = Callable[[Callable[[Event], None], Callable[[], None]], Awaitable[None]]


class Flight:
    def __init__(self, ticket: Ticket, work: Work, grace: float) -> None:
        """`work` gets `emit` and `seal`; it is started at once."""
        self.ticket = ticket
        self.listeners = 0
        """Connections that wait for the answer: each joins before anything is awaited, so none is ever overlooked."""
        self.over = False
        self.aborted = False
        """It will end without an answer: nobody should join it any more."""
        self.sealed = False
        """The turn is being recorded: it can no longer be aborted."""
        self._grace = grace
        self._events: list[Event] = []
        self._error: StenographError | None = None
        self._why: StenographError = CallerError("the call was aborted", code="aborted")
        self._news = asyncio.Event()
        self._leaving: asyncio.TimerHandle | None = None
        self._task = asyncio.ensure_future(self._run(work))

    def join(self) -> None:
        self.listeners += 1
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def leave(self) -> None:
        self.listeners -= 1
        if not self.listeners and not self.over:
            self._leaving = asyncio.get_running_loop().call_later(self._grace, self.abort)

    async def events(self, patience: Callable[[], float | None] = lambda: None) -> AsyncIterator[Event | None]:
        """All of them from the beginning, as they come; raises what the call failed of. None: as many seconds as
        `patience` then had went by without one."""
        place = 0
        while place < len(self._events) or not self.over:
            if place < len(self._events):
                yield self._events[place]
                place += 1
            elif not await self._heard(patience()):
                yield None
        if self._error is not None:
            raise self._error

    async def _heard(self, patience: float | None) -> bool:
        try:
            async with asyncio.timeout(patience):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def abort(self, why: StenographError | None = None) -> None:
        """`why`: what those who still wait are told.

        Not at once: a task that is cancelled before its first step never runs, and so would count nothing.
        """
        self._why = why or self._why
        asyncio.get_running_loop().call_soon(self._cancel)

    async def ended(self) -> None:
        await asyncio.wait({self._task})

    async def _run(self, work: Work) -> None:
        try:
            await work(self._emit, self._seal)
        except StenographError as error:
            self._error = error
        except asyncio.CancelledError:
            self._error = self._why
        except Exception as error:
            log.exception("call %s failed", self.ticket.call_id)
            self._error = InternalError()
            self._error.__cause__ = error
        finally:
            self.over = True
            self._wake()

    def _cancel(self) -> None:
        if not self.sealed:
            self.aborted = True
            self._task.cancel()

    def _emit(self, event: Event) -> None:
        self._events.append(event)
        self._wake()

    def _seal(self) -> None:
        self.sealed = True

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
