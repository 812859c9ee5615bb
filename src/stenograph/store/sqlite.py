"""The store on disk: one SQLite file in WAL mode, one writer, any number of readers in other processes.

`synchronous=FULL` makes every commit wait for the disk, which is law 5; grouping them (see `writer`) makes it cheap.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from stenograph.errors import ConfigError
from stenograph.store import schema
from stenograph.store.faults import opening, translated
from stenograph.store.lock import FolderLock
from stenograph.store.store import Record
from stenograph.store.tables import Reads, forgetting, statements
from stenograph.store.writer import Writer

FILE = "stenograph.db"


class SqliteStore(Reads):
    """What `serve` writes to. Opening it takes the folder's lock; a second one is refused with a `ConfigError`."""

    def __init__(self, folder: Path) -> None:
        with opening(folder), contextlib.ExitStack() as undo:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(folder)
            undo.callback(self._lock.release)
            writing = undo.enter_context(contextlib.closing(_connect(folder, "rwc")))
            _make_durable(writing)
            super().__init__(_connect(folder, "ro"))
            self._writer = Writer(writing)
            undo.pop_all()

    @property
    def transactions(self) -> int:
        """How many were needed for all commits so far."""
        return self._writer.transactions

    async def commit(self, records: Sequence[Record]) -> None:
        """A cancelled `commit` leaves open whether the records became durable: shield it where that matters."""
        await asyncio.wrap_future(self._writer.submit(statements(records)))

    async def delete(self, session_id: str) -> None:
        """In turn with the commits: those that were asked for earlier are forgotten too."""
        await asyncio.wrap_future(self._writer.submit(forgetting(session_id)))

    async def close(self) -> None:
        """Waits for every commit under way. The writer's connection closes last, and takes the WAL files with it."""
        self._connection.close()
        try:
            with translated():
                await asyncio.to_thread(self._writer.close)
        finally:
            self._lock.release()


class SqliteReader(Reads):
    """What everybody else reads with, whether a `serve` is running or not. It takes no lock and writes no record."""

    def __init__(self, folder: Path) -> None:
        with opening(folder), contextlib.ExitStack() as undo:
            if not (folder / FILE).is_file():
                raise ConfigError(f"no store here: there is no {FILE}")
            reading = undo.enter_context(contextlib.closing(_connect(folder, "ro")))
            schema.require_current(reading)
            super().__init__(reading)
            undo.pop_all()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _connect(folder: Path, mode: str) -> sqlite3.Connection:
    """Transactions are begun and ended in so many words, never by the driver."""
    uri = f"{(folder / FILE).resolve().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def _make_durable(connection: sqlite3.Connection) -> None:
    """Version first: a store of a newer Stenograph's is refused before a pragma could touch it."""
    connection.execute("PRAGMA foreign_keys = ON")
    schema.prepare(connection)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise ConfigError("SQLite cannot use its write-ahead log on this file system: choose a local disk")
    connection.execute("PRAGMA synchronous = FULL")
