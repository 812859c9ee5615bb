"""Complete groups for trainers, whether they ask over HTTP or in this process: durable before anybody is told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence

from stenograph.core import Batch, SessionFacts
from stenograph.errors import StoreError
from stenograph.server.metrics import Metrics
from stenograph.session.batches import Batches
from stenograph.store.store import Store

log = logging.getLogger("stenograph")


class Deliveries:
    def __init__(self, store: Store, now: Callable[[], float], metrics: Metrics) -> None:
        self._store = store
        self._now = now
        self._metrics = metrics
        self._batches = Batches(store.batches())
        self._news = asyncio.Event()
        """Set, and replaced by another, when a group is complete."""
        self._closed = False
        self._writing: set[asyncio.Task[None]] = set()

    def arrive(self, facts: SessionFacts) -> None:
        """A session has ended, and nothing of it is under way any more."""
        batch = self._batches.arrive(facts, _new_id(), self._now())
        if batch is not None:
            self._metrics.batches.labels("completed").inc()
            self._write(batch.id)
            self._tell()

    def recover(self, sessions: Mapping[str, SessionFacts]) -> None:
        """What an earlier process had no time to write down follows from its sessions, in the order of their ends."""
        for id in self._batches.missing(sessions):
            self.forget(id)
        for facts in sorted(sessions.values(), key=lambda facts: facts.touched_at):
            self.arrive(facts)

    def forget(self, session_id: str) -> None:
        batch = self._batches.forget(session_id)
        if batch is not None:
            self._metrics.batches.labels("dropped").inc(not batch.sessions)
            self._write(batch.id)

    async def lease(self, most: int, seconds: float, too_old: Callable[[str], bool]) -> tuple[Batch, ...]:
        """What nobody holds now, the first to be complete first; `seconds` later it is free again."""
        now = self._now()
        handed = self._batches.lease(most, now=now, until=now + seconds, new_id=_new_id, too_old=too_old)
        self._metrics.stale_sessions.inc(handed.stale)
        self._metrics.batches.labels("dropped").inc(len(handed.dropped))
        for batch in handed.leased:
            self._metrics.batches.labels("leased" if batch.deliveries == 1 else "leased_again").inc()
        if handed.leased or handed.dropped:
            await self._store.commit([*handed.leased, *handed.dropped])
        return handed.leased

    async def next(self, seconds: float, too_old: Callable[[str], bool]) -> Batch | None:
        """The first that nobody holds, as soon as there is one. None: the gateway is closing."""
        while not self._closed:
            news = self._news
            leased = await self.lease(1, seconds, too_old)
            if leased:
                return leased[0]
            await self._wait(news)
        return None

    async def acknowledge(self, leases: Sequence[str]) -> tuple[bool, ...]:
        """Of each, whether the batch was this lease's still: if not, another has it, or it was dropped."""
        acknowledged = self._batches.acknowledged
        found = [self._batches.acknowledge(lease) for lease in leases]
        self._metrics.batches.labels("acknowledged").inc(self._batches.acknowledged - acknowledged)
        self._metrics.batches.labels("lost").inc(found.count(None))
        # Repeated ones too: the first time, the store may have failed.
        await self._store.commit([batch for batch in found if batch is not None])
        return tuple(batch is not None for batch in found)

    @property
    def waiting(self) -> int:
        return self._batches.waiting(self._now())

    @property
    def open(self) -> int:
        return self._batches.open

    async def close(self) -> None:
        self._closed = True
        self._tell()
        if self._writing:
            await asyncio.wait(set(self._writing))

    async def _wait(self, news: asyncio.Event) -> None:
        """Until a group is complete, or a lease runs out."""
        free = self._batches.next_free()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), None if free is None else max(0.0, free - self._now()))

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _write(self, id: str) -> None:
        task = asyncio.get_running_loop().create_task(self._keep(id))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _keep(self, id: str) -> None:
        """As it is by now: an older one must not come last. Nobody waits for it, and `recover` mends what is lost."""
        batch = self._batches.newest(id)
        try:
            await self._store.commit([batch])
        except StoreError as error:
            log.error("group %s is not durable yet: %s", batch.group, error.message)


def _new_id() -> str:
    return secrets.token_hex(8)
