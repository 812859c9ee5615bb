"""Rows into and out of one SQLite connection. Every store is this, over a file or over memory."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from stenograph.core import Batch, Lesson, Part, SessionFacts, Teacher, WeightsSaid
from stenograph.store.faults import translated
from stenograph.store.pack import BATCHES, CALLS, FACTS, LESSONS, PARTS, SAID, TEACHERS, TURNS, Row, rows
from stenograph.store.schema import TABLES, Table
from stenograph.store.store import Record, StoredSession, TurnsCommitted

Statement: TypeAlias = tuple[str, Row]

PAGE = 256
"""Sessions read at a time: a slow consumer of `facts()` must not hold a snapshot, which would keep the WAL growing."""

_INSERT = {table.name: table.insert for table in TABLES}
_FACTS_AFTER = "SELECT * FROM session WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?"
_CALLS = "SELECT * FROM call WHERE session_id = ? ORDER BY seq"
_TURNS = "SELECT turn.* FROM turn JOIN call ON call.id = call_id WHERE session_id = ? ORDER BY turn.seq"
_PARTS = """SELECT part.* FROM part JOIN turn ON turn.id = turn_id JOIN call ON call.id = call_id
WHERE session_id = ? ORDER BY turn.seq, place"""

_SIDECARS = """SELECT sidecar.value FROM part JOIN turn ON turn.id = turn_id JOIN call ON call.id = call_id,
json_each(part.rest, '$.sidecars') AS sidecar WHERE session_id"""
_HEIR = """SELECT value FROM json_each(lesson.rest, '$.also') WHERE value != :id AND value IN (SELECT id FROM session)
LIMIT 1"""
_LESSONS = "SELECT * FROM lesson WHERE key IN (SELECT value FROM json_each(?))"

_FORGET = (
    f"DELETE FROM blob WHERE hash IN ({_SIDECARS} = :id) AND hash NOT IN ({_SIDECARS} != :id)",
    "UPDATE call SET parent = NULL WHERE session_id = :id",
    """DELETE FROM part WHERE turn_id IN (
        SELECT turn.id FROM turn JOIN call ON call.id = call_id WHERE session_id = :id)""",
    "DELETE FROM turn WHERE call_id IN (SELECT id FROM call WHERE session_id = :id)",
    "DELETE FROM call WHERE session_id = :id",
    f"UPDATE lesson SET session_id = ({_HEIR}) WHERE session_id = :id AND EXISTS ({_HEIR})",
    "DELETE FROM lesson WHERE session_id = :id",
    "DELETE FROM session WHERE id = :id",
)
"""Calls refer to turns and turns to calls, so one of the two lets go first. Sidecars and lessons go with the last
session that names them; tools and template arguments stay: they are small, and nearly all sessions share them."""


def statements(records: Sequence[Record]) -> list[Statement]:
    """Facts first: a call may be committed together with the session it is in, in whatever order they are named."""
    ordered = sorted(records, key=lambda record: not isinstance(record, SessionFacts))
    with translated():
        return [_statement(table, row) for record in ordered for table, row in rows(record)]


def _statement(table: Table[Any], row: Row) -> Statement:
    return _INSERT[table.name], row


def forgetting(session_id: str) -> list[Statement]:
    return [(sql, {"id": session_id}) for sql in _FORGET]


def write(connection: sqlite3.Connection, batch: Iterable[Statement]) -> None:
    """All of it in one transaction, or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for sql, row in batch:
            connection.execute(sql, row)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class Reads:
    """The reading half of a store."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        self._connection = connection
        self._guard = threading.RLock()
        """A snapshot belongs to the connection, not to a cursor: two threads would read in each other's."""

    def facts(self) -> Iterator[SessionFacts]:
        """Every session, oldest first; those that are created meanwhile are seen too."""
        page = self._page(float("-inf"), "")
        while page:
            yield from page
            page = self._page(page[-1].created_at, page[-1].id)

    def load(self, session_id: str) -> StoredSession | None:
        with self._snapshot():
            found = self._select("SELECT * FROM session WHERE id = ?", session_id)
            return StoredSession(FACTS.value(found[0]), self._calls(session_id)) if found else None

    def blob(self, hash: str) -> bytes | None:
        with self._snapshot():
            found = self._select("SELECT body FROM blob WHERE hash = ?", hash)
            return bytes(found[0]["body"]) if found else None

    def batches(self) -> tuple[Batch, ...]:
        with self._snapshot():
            return tuple(BATCHES.value(row) for row in self._select("SELECT * FROM batch ORDER BY place"))

    def weights(self) -> tuple[WeightsSaid, ...]:
        with self._snapshot():
            return tuple(SAID.value(row) for row in self._select("SELECT * FROM weights ORDER BY seq"))

    def teachers(self) -> tuple[Teacher, ...]:
        with self._snapshot():
            return tuple(TEACHERS.value(row) for row in self._select("SELECT * FROM teacher ORDER BY name"))

    def lessons(self, keys: Iterable[str]) -> dict[str, Lesson]:
        wanted = msgspec.json.encode(list(keys)).decode()
        with self._snapshot():
            found = [LESSONS.value(row) for row in self._select(_LESSONS, wanted)]
        return {lesson.key: lesson for lesson in found}

    def _page(self, created_at: float, id: str) -> list[SessionFacts]:
        with self._snapshot():
            return [FACTS.value(row) for row in self._select(_FACTS_AFTER, created_at, id, PAGE)]

    def _calls(self, session_id: str) -> tuple[TurnsCommitted, ...]:
        parts = self._parts(session_id)
        turns: dict[str, list[sqlite3.Row]] = defaultdict(list)
        for row in self._select(_TURNS, session_id):
            turns[row["call_id"]].append(row)
        return tuple(_committed(row, turns[row["id"]], parts) for row in self._select(_CALLS, session_id))

    def _parts(self, session_id: str) -> dict[str, list[Part]]:
        parts: dict[str, list[Part]] = defaultdict(list)
        for row in self._select(_PARTS, session_id):
            parts[row["turn_id"]].append(PARTS.value(row))
        return parts

    def _select(self, sql: str, *arguments: str | float) -> list[sqlite3.Row]:
        return self._connection.execute(sql, arguments).fetchall()

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[None]:
        """One moment of the store, while another thread or process goes on writing."""
        with self._guard, translated():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")


def _committed(row: sqlite3.Row, turns: list[sqlite3.Row], parts: dict[str, list[Part]]) -> TurnsCommitted:
    call = CALLS.value(row)
    return TurnsCommitted(tuple(TURNS.value(turn, call=call, parts=tuple(parts[turn["id"]])) for turn in turns))
