"""The sessions of one gateway: opened, found, changed, ended."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Iterator

import msgspec

from stenograph.core import Attempt, SessionFacts, State
from stenograph.errors import Conflict, EngineUnavailable, NotFound, Overloaded
from stenograph.live import LiveSession, revived
from stenograph.server.deliveries import Deliveries
from stenograph.server.flights import Flights
from stenograph.session import lifecycle
from stenograph.session.tree import Tree
from stenograph.store.store import Store


class Registry:
    def __init__(
        self, store: Store, now: Callable[[], float], grace: float, deliveries: Deliveries, most_open: int
    ) -> None:
        self._store = store
        self._now = now
        self._grace = grace
        self._most_open = most_open
        self._deliveries = deliveries
        self._live: dict[str, LiveSession] = {}
        self._flights: dict[str, Flights] = {}
        self._facts = {facts.id: facts for facts in store.facts()}
        """Of every session, in the order in which they were opened; the live ones' own are newer."""
        self._by_key = {facts.key_hash: facts.id for facts in self._facts.values()}
        self._open = {facts.id for facts in self._facts.values() if facts.state is State.OPEN}
        self._writing: set[asyncio.Task[None]] = set()
        self._leaving: set[str] = set()
        """Sessions that are being deleted: they keep their names until that is durable."""
        self._deliveries.recover(self._facts)

    # -- opening and finding -------------------------------------------------------------------------------

    def open(self, facts: SessionFacts) -> tuple[LiveSession, asyncio.Task[None]]:
        """The session is there at once; it is durable when the task is done (or with its first turn)."""
        if facts.id in self._facts:
            raise Conflict(f"there is a session {facts.id} already", code="session_exists", param="id")
        if len(self._open) >= self._most_open:
            raise Overloaded(
                f"{self._most_open} sessions are open, which is all that may be: finish some, or give a ttl"
            )
        session = LiveSession(facts, Tree())
        self._live[facts.id] = session
        self._by_key[facts.key_hash] = facts.id
        return session, self.change(session, facts)

    def get(self, id: str) -> LiveSession | None:
        if id not in self._live and id in self._facts:
            stored = self._store.load(id)
            if stored is not None:
                self._live[id] = revived(stored)
        return self._live.get(id)

    def must(self, id: str) -> LiveSession:
        session = self.get(id)
        if session is None:
            raise _none(id)
        return session

    def by_key(self, key: str) -> str | None:
        return self._by_key.get(hash_key(key))

    def flights(self, session: LiveSession) -> Flights:
        return self._flights.setdefault(session.facts.id, Flights(self._grace))

    @property
    def open_sessions(self) -> int:
        return len(self._open)

    def all_facts(self) -> Iterator[SessionFacts]:
        """Oldest first."""
        for id, facts in list(self._facts.items()):
            yield self._live[id].facts if id in self._live else facts

    # -- changing ------------------------------------------------------------------------------------------

    def change(self, session: LiveSession, facts: SessionFacts) -> asyncio.Task[None]:
        """In memory at once; the task is done when it is durable."""
        if self._live.get(facts.id) is not session or facts.id in self._leaving:
            raise _none(facts.id)
        session.facts = self._facts[facts.id] = facts
        (self._open.add if facts.state is State.OPEN else self._open.discard)(facts.id)
        task = asyncio.get_running_loop().create_task(self._write(session))
        return self._kept(task)

    def _kept(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        """A task that `close` waits for."""
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return task

    async def _write(self, session: LiveSession) -> None:
        """The newest facts, whichever change this was begun for: an older one must not come last. A session that was
        deleted meanwhile has none."""
        if self._live.get(session.facts.id) is session and session.facts.id not in self._leaving:
            await self._store.commit([session.facts])

    def end(self, session: LiveSession, state: State, error: str | None) -> asyncio.Task[None]:
        task = self.change(session, lifecycle.ended(session.facts, state, error, self._now()))
        if state is State.CANCELLED:
            self.flights(session).abort()
        self._arrive(session)
        return task

    def _arrive(self, session: LiveSession) -> None:
        """A call that is under way may still become a turn, and a trainer is given all of them."""
        if self.flights(session).under_way:
            self._kept(asyncio.get_running_loop().create_task(self._arrive_later(session)))
        else:
            self._deliveries.arrive(session.facts)

    async def _arrive_later(self, session: LiveSession) -> None:
        await self.flights(session).ended()
        if session.facts.id in self._facts:
            self._deliveries.arrive(session.facts)

    def count(self, session: LiveSession, attempt: Attempt) -> asyncio.Task[None]:
        return self.change(session, lifecycle.attempted(session.facts, attempt, self._now()))

    async def delete(self, session: LiveSession) -> None:
        """It takes no more calls, and what is under way ends first: written later, either would bring it back."""
        id, before = session.facts.id, session.facts
        if id in self._leaving:
            raise _none(id)
        self._leaving.add(id)
        session.facts = msgspec.structs.replace(before, state=State.CANCELLED)
        try:
            await self._emptied(session)
            await self._store.delete(id)
        except BaseException:
            session.facts = before
            raise
        finally:
            self._leaving.discard(id)
        self._by_key.pop(before.key_hash, None)
        self._open.discard(id)
        for kept in (self._live, self._flights, self._facts):
            kept.pop(id, None)
        self._deliveries.forget(id)

    async def _emptied(self, session: LiveSession) -> None:
        flights = self.flights(session)
        flights.abort()
        await flights.ended()

    def expire(self) -> None:
        """Ends what nobody has called for its `ttl`."""
        now = self._now()
        for id in tuple(self._open):
            facts = self._live[id].facts if id in self._live else self._facts[id]
            if facts.ttl is not None and now - facts.touched_at > facts.ttl:
                session = self.must(id)
                if not self.flights(session).under_way:
                    self.end(session, State.EXPIRED, None)

    def give_up(self) -> None:
        """What does not end in time, before the gateway does: whoever waits is told, and may ask again."""
        for flights in self._flights.values():
            flights.abort(EngineUnavailable("the gateway is being stopped: ask again once it is back"))

    async def close(self) -> None:
        for flights in self._flights.values():
            flights.abort()
            await flights.ended()
        if self._writing:
            await asyncio.wait(set(self._writing))


def _none(id: str) -> NotFound:
    return NotFound(f"there is no session {id}", code="session_not_found")


def hash_key(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def new_key() -> str:
    return f"sk-steno-{secrets.token_urlsafe(24)}"
