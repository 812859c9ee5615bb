"""The stores that a law has to hold on, and how somebody else reads them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from stenograph.store.memory import MemoryStore
from stenograph.store.sqlite import SqliteReader, SqliteStore
from stenograph.store.store import Store, StoredSession

STORES = ("memory", "sqlite")
Load: TypeAlias = Callable[[str], StoredSession | None]


@contextmanager
def opened(kind: str) -> Iterator[tuple[Store, Load]]:
    """A store, and a reader of it: a connection of its own, which sees only what is committed."""
    if kind == "memory":
        store = MemoryStore()
        yield store, store.load
        return
    with tempfile.TemporaryDirectory() as folder:
        durable = SqliteStore(Path(folder))
        with SqliteReader(Path(folder)) as reader:
            yield durable, reader.load


class Lasting(MemoryStore):
    """One that outlives its gateways."""

    async def close(self) -> None: ...
