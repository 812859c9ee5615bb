"""A store that ends with the process: the same tables, the same laws, no file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from stenograph.store import schema
from stenograph.store.faults import translated
from stenograph.store.store import Record
from stenograph.store.tables import Reads, Statement, forgetting, statements, write


class MemoryStore(Reads):
    """SQLite without a disk, so that what it refuses and what it gives back cannot differ from `SqliteStore`."""

    def __init__(self) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA foreign_keys = ON")
        schema.prepare(connection)
        super().__init__(connection)

    async def commit(self, records: Sequence[Record]) -> None:
        self._write(statements(records))

    async def delete(self, session_id: str) -> None:
        self._write(forgetting(session_id))

    async def close(self) -> None:
        self._connection.close()

    def _write(self, batch: list[Statement]) -> None:
        with self._guard, translated():
            write(self._connection, batch)
