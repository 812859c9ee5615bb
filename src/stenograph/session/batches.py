"""Complete groups on their way to trainers: each in turn, at least once, until one of them is done with it.

    sessions end ─▶ waiting ──▶ leased ──▶ acknowledged
                       │          │ └─▶ as good as waiting, once the lease has run out
                       └──────────┴──▶ dropped: none of its sessions can be delivered any more

The clock and the ids come from outside. Every change gives a new `Batch`, which the caller makes durable before anybody
is told of it; what was not is given again, and so is nothing worse than late.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator

import msgspec

from stenograph.core import Batch, BatchState, SessionFacts, Value
from stenograph.session.lifecycle import ENDS

CLOSED = frozenset({BatchState.ACKNOWLEDGED, BatchState.DROPPED})


class Handed(Value):
    """What came of a trainer's asking."""

    leased: tuple[Batch, ...]
    dropped: tuple[Batch, ...]
    stale: int
    """Sessions that were dropped, in all of them."""


class Batches:
    def __init__(self, known: Iterable[Batch] = ()) -> None:
        """`known`: as the store has them, in order."""
        self._open: dict[str, Batch] = {}
        """Waiting or leased, in order."""
        self._leases: dict[str, str] = {}
        """The batch of each lease that may still acknowledge it, or has."""
        self._closed: dict[str, Batch] = {}
        self._ended: dict[str, float] = {}
        """Sessions that are in a batch, or wait to be, and since when: one created later only has the same id."""
        self._forming: dict[tuple[str, int], list[str]] = defaultdict(list)
        """By group and size: sessions that disagree on the size are no group together."""
        self._place = 0
        self.acknowledged = 0
        """How many, since the beginning of this process."""
        for batch in known:
            self._recall(batch)

    def _recall(self, batch: Batch) -> None:
        self._place = max(self._place, batch.place + 1)
        self._ended.update(dict.fromkeys((*batch.sessions, *batch.stale), batch.completed_at))
        where = self._closed if batch.state in CLOSED else self._open
        where[batch.id] = batch
        if batch.lease is not None and batch.state is not BatchState.DROPPED:
            self._leases[batch.lease] = batch.id

    def arrive(self, facts: SessionFacts, id: str, now: float) -> Batch | None:
        """A session has ended. The batch that is complete with it, if one is; `id` is its name then."""
        if not delivered(facts) or facts.created_at <= self._ended.get(facts.id, -math.inf):
            return None
        key = (facts.group or "", facts.group_size or 0)
        forming = self._forming[key]
        forming.append(facts.id)
        self._ended[facts.id] = now
        if len(forming) < key[1]:
            return None
        del self._forming[key]
        batch = Batch(id=id, group=key[0], size=key[1], place=self._place, sessions=tuple(forming), completed_at=now)
        self._place += 1
        self._open[id] = batch
        return batch

    def lease(
        self, most: int, *, now: float, until: float, new_id: Callable[[], str], too_old: Callable[[str], bool]
    ) -> Handed:
        """The first ones that nobody holds, `most` at most."""
        leased, dropped, stale = list[Batch](), list[Batch](), 0
        for batch in list(self._free(now)):
            if len(leased) == most:
                break
            old = tuple(id for id in batch.sessions if too_old(id))
            left = _without(batch, old, stale=old)
            stale += len(old)
            if left.sessions:
                leased.append(self._leased(left, new_id(), until))
            else:
                dropped.append(self._dropped(left))
        return Handed(tuple(leased), tuple(dropped), stale)

    def acknowledge(self, lease: str) -> Batch | None:
        """None: it is somebody else's by now, or was dropped. Again changes nothing, so a call may be repeated."""
        id = self._leases.get(lease)
        if id is None:
            return None
        if id in self._open:
            self._closed[id] = msgspec.structs.replace(self._open.pop(id), state=BatchState.ACKNOWLEDGED)
            self.acknowledged += 1
        return self._closed[id]

    def newest(self, id: str) -> Batch:
        return self._open.get(id) or self._closed[id]

    def forget(self, session_id: str) -> Batch | None:
        """It was deleted: its group goes on without it. The batch that is another now."""
        self._ended.pop(session_id, None)
        for forming in self._forming.values():
            if session_id in forming:
                forming.remove(session_id)
        for batch in self._open.values():
            if session_id in batch.sessions:
                left = _without(batch, (session_id,))
                self._open[batch.id] = left
                return left if left.sessions else self._dropped(left)
        return None

    def missing(self, sessions: Container[str]) -> list[str]:
        """Of those that are to be delivered, the ones that are not among `sessions`."""
        return [id for batch in self._open.values() for id in batch.sessions if id not in sessions]

    def waiting(self, now: float) -> int:
        return sum(1 for _ in self._free(now))

    @property
    def open(self) -> int:
        """Waiting or leased."""
        return len(self._open)

    def next_free(self) -> float | None:
        """When the first lease runs out."""
        return min(
            (batch.leased_until for batch in self._open.values() if batch.leased_until is not None), default=None
        )

    def _free(self, now: float) -> Iterator[Batch]:
        return (batch for batch in self._open.values() if batch.leased_until is None or batch.leased_until <= now)

    def _leased(self, batch: Batch, lease: str, until: float) -> Batch:
        self._give_up(batch)
        self._leases[lease] = batch.id
        self._open[batch.id] = msgspec.structs.replace(
            batch, state=BatchState.LEASED, lease=lease, leased_until=until, deliveries=batch.deliveries + 1
        )
        return self._open[batch.id]

    def _dropped(self, batch: Batch) -> Batch:
        self._give_up(batch)
        del self._open[batch.id]
        self._closed[batch.id] = msgspec.structs.replace(batch, state=BatchState.DROPPED)
        return self._closed[batch.id]

    def _give_up(self, batch: Batch) -> None:
        """Whoever had it until now is too late."""
        if batch.lease is not None:
            del self._leases[batch.lease]


def delivered(facts: SessionFacts) -> bool:
    """Whether a session is one that trainers are waiting for."""
    return facts.state in ENDS and facts.role == "train" and facts.group is not None and facts.group_size is not None


def _without(batch: Batch, sessions: tuple[str, ...], *, stale: tuple[str, ...] = ()) -> Batch:
    left = tuple(id for id in batch.sessions if id not in sessions)
    return msgspec.structs.replace(batch, sessions=left, stale=batch.stale + stale)
