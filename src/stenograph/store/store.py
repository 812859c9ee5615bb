"""What the way of a request needs of a store: when `commit` returns, the records are durable (law 5).

A record is written whole or not at all, and all records of one `commit` together. Of some the latest replaces the
earlier: the facts of a session, a batch, a teacher and what it says. Others are written once, never again: a call with
its turns, and what was said of the weights. Tools and template arguments are content-addressed blobs, named by the hash
that the call carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from stenograph.core import Batch, Lesson, SessionFacts, Teacher, Turn, Value, WeightsSaid


class TurnsCommitted(Value):
    """All turns of one call. `turn.call` is one object, shared by the siblings, and is stored once."""

    turns: tuple[Turn, ...]


class Blob(Value):
    hash: str
    body: bytes


Record: TypeAlias = SessionFacts | TurnsCommitted | Blob | Batch | WeightsSaid | Teacher | Lesson


class StoredSession(Value):
    facts: SessionFacts
    calls: tuple[TurnsCommitted, ...]
    """In the order in which they were committed: parents come before children."""


class Store(Protocol):
    async def commit(self, records: Sequence[Record]) -> None:
        """Returns when all of `records` are durable; raises `StoreError` where they are not, and then none is."""

    async def delete(self, session_id: str) -> None:
        """Forgets a session and all its turns, for good; durable when it returns. Unknown is done."""

    def facts(self) -> Iterator[SessionFacts]:
        """Every session, oldest first."""

    def load(self, session_id: str) -> StoredSession | None: ...

    def blob(self, hash: str) -> bytes | None: ...

    def batches(self) -> Sequence[Batch]:
        """All that there ever were, in the order in which they became complete."""

    def weights(self) -> Sequence[WeightsSaid]:
        """All that was said, in order."""

    def teachers(self) -> Sequence[Teacher]:
        """Each as it was when it last scored, by name."""

    def lessons(self, keys: Iterable[str]) -> Mapping[str, Lesson]:
        """Those that are there."""

    async def close(self) -> None: ...
