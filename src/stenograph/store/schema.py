"""The tables of a store, declared once: the SQL is rendered from here, and `pack` splits the nouns along these columns.

    session ──< call ──< turn ──< part          blob (by hash)          meta (the schema's version)
                 └──────── parent ┘             batch (names its sessions, and outlives them)          weights
                                                teacher              lesson (goes with the session it names)

A call holds its new context once, however many turns (choices) it has; a turn holds no tokens but through its parts.
Arrays are packed; every field of a noun without a column of its own is in the row's `rest`, as JSON.
"""

from __future__ import annotations

import enum
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Generic, Literal, TypeVar

from stenograph.core import Batch, Call, Lesson, Part, SessionFacts, Teacher, Turn, Value, WeightsSaid
from stenograph.errors import ConfigError
from stenograph.store.store import Blob

N = TypeVar("N", bound=Value)


class Holds(enum.Enum):
    """What a column has to do with its table's noun."""

    FIELD = enum.auto()
    """One field, as it is."""
    IDS = enum.auto()
    """One field: an array, as little-endian int32."""
    LOGPROBS = enum.auto()
    """One field: an array, as little-endian float32."""
    TOP = enum.auto()
    """One field: the rows of top logprobs, in msgpack; NULL where they were not asked for."""
    REST = enum.auto()
    """All the fields that have no column, as one JSON object. Defaults are written too: they may change one day."""
    KEY = enum.auto()
    """Nothing: where the row belongs."""
    SEQUENCE = enum.auto()
    """Nothing: the order of commit, counted by SQLite. (An implicit rowid would not survive a VACUUM.)"""


class Column(Value):
    name: str
    sql: str
    """Its type and constraints."""
    holds: Holds = Holds.FIELD
    field: str = ""
    """Of the noun, where it is not called like the column."""

    @property
    def of(self) -> str | None:
        return None if self.holds in _FIELDLESS else self.field or self.name


class Table(Value, Generic[N]):
    name: str
    noun: type[N]
    columns: tuple[Column, ...]
    rules: tuple[str, ...] = ()
    repeat: Literal["refuse", "replace", "ignore"] = "refuse"
    """What a second row with the same first column meets. Law 3: a call, a turn or a part is written once."""
    apart: frozenset[str] = frozenset()
    """The noun's fields that are rows of other tables."""

    @property
    def rest(self) -> tuple[str, ...]:
        """The fields in the JSON column: whatever the noun has and no column holds, so a new one is never lost."""
        held = {column.of for column in self.columns} | self.apart
        return tuple(name for name in self.noun.__struct_fields__ if name not in held)

    @property
    def create(self) -> str:
        lines = (*(f"{column.name} {column.sql}" for column in self.columns), *self.rules)
        return f"CREATE TABLE {self.name} (\n  " + ",\n  ".join(lines) + "\n)"

    @property
    def insert(self) -> str:
        names = [column.name for column in self.columns if column.holds is not Holds.SEQUENCE]
        marks = ", ".join(f":{name}" for name in names)
        return f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({marks}){self._on_conflict(names)}"

    def _on_conflict(self, names: list[str]) -> str:
        key, *others = names
        if self.repeat == "replace":
            return f" ON CONFLICT ({key}) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in others)
        return f" ON CONFLICT ({key}) DO NOTHING" if self.repeat == "ignore" else ""


_FIELDLESS = frozenset({Holds.REST, Holds.KEY, Holds.SEQUENCE})
_REST = Column("rest", "TEXT NOT NULL", Holds.REST)
_SEQUENCE = Column("seq", "INTEGER PRIMARY KEY", Holds.SEQUENCE)

SESSION = Table(
    "session",
    SessionFacts,
    (
        Column("id", "TEXT NOT NULL PRIMARY KEY"),
        Column("grp", "TEXT", field="group"),
        Column("state", "TEXT NOT NULL"),
        Column("created_at", "REAL NOT NULL"),
        Column("touched_at", "REAL NOT NULL"),
        _REST,
    ),
    repeat="replace",
)
CALL = Table(
    "call",
    Call,
    (
        _SEQUENCE,
        Column("id", "TEXT NOT NULL UNIQUE"),
        Column("session_id", "TEXT NOT NULL REFERENCES session (id)"),
        Column("parent", "TEXT REFERENCES turn (id)"),
        Column("context", "BLOB NOT NULL", Holds.IDS),
        _REST,
    ),
)
TURN = Table(
    "turn",
    Turn,
    (
        _SEQUENCE,
        Column("id", "TEXT NOT NULL UNIQUE"),
        Column("call_id", "TEXT NOT NULL REFERENCES call (id)", Holds.KEY),
        Column("choice", "INTEGER NOT NULL"),
        Column("top", "BLOB", Holds.TOP),
        _REST,
    ),
    rules=("UNIQUE (call_id, choice)",),
    apart=frozenset({"call", "parts"}),
)
PART = Table(
    "part",
    Part,
    (
        Column("turn_id", "TEXT NOT NULL REFERENCES turn (id)", Holds.KEY),
        Column("place", "INTEGER NOT NULL", Holds.KEY),
        Column("ids", "BLOB NOT NULL", Holds.IDS),
        Column("logprobs", "BLOB NOT NULL", Holds.LOGPROBS),
        _REST,
    ),
    rules=("PRIMARY KEY (turn_id, place)",),
)
BLOB = Table(
    "blob",
    Blob,
    (Column("hash", "TEXT NOT NULL PRIMARY KEY"), Column("body", "BLOB NOT NULL")),
    repeat="ignore",
)
BATCH = Table(
    "batch",
    Batch,
    (
        Column("id", "TEXT NOT NULL PRIMARY KEY"),
        Column("place", "INTEGER NOT NULL"),
        Column("state", "TEXT NOT NULL"),
        _REST,
    ),
    repeat="replace",
)
WEIGHTS = Table(
    "weights",
    WeightsSaid,
    (_SEQUENCE, Column("version", "TEXT NOT NULL"), Column("step", "INTEGER")),
)
TEACHER = Table(
    "teacher",
    Teacher,
    (Column("name", "TEXT NOT NULL PRIMARY KEY"), _REST),
    repeat="replace",
)
LESSON = Table(
    "lesson",
    Lesson,
    (
        Column("key", "TEXT NOT NULL PRIMARY KEY"),
        Column("session_id", "TEXT NOT NULL"),
        Column("top_k", "INTEGER NOT NULL"),
        Column("token_ids", "BLOB NOT NULL", Holds.IDS),
        Column("logprobs", "BLOB NOT NULL", Holds.LOGPROBS),
        Column("token_logprobs", "BLOB NOT NULL", Holds.LOGPROBS),
        _REST,
    ),
    repeat="replace",
)
TABLES = (SESSION, CALL, TURN, PART, BLOB, BATCH, WEIGHTS, TEACHER, LESSON)
INDEXES = (
    "CREATE INDEX session_by_age ON session (created_at, id)",
    "CREATE INDEX call_by_session ON call (session_id)",
    "CREATE INDEX call_by_parent ON call (parent)",
    "CREATE INDEX lesson_by_session ON lesson (session_id)",
)

"""The last two are for deleting: SQLite asks of every turn that goes whether a call still refers to it."""

VERSION = 3
MIGRATIONS: Mapping[int, tuple[str, ...]] = {
    1: (
        """CREATE TABLE batch (
  id TEXT NOT NULL PRIMARY KEY,
  place INTEGER NOT NULL,
  state TEXT NOT NULL,
  rest TEXT NOT NULL
)""",
        """CREATE TABLE weights (
  seq INTEGER PRIMARY KEY,
  version TEXT NOT NULL,
  step INTEGER
)""",
    ),
    2: (
        """CREATE TABLE teacher (
  name TEXT NOT NULL PRIMARY KEY,
  rest TEXT NOT NULL
)""",
        """CREATE TABLE lesson (
  key TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL,
  top_k INTEGER NOT NULL,
  token_ids BLOB NOT NULL,
  logprobs BLOB NOT NULL,
  token_logprobs BLOB NOT NULL,
  rest TEXT NOT NULL
)""",
        "CREATE INDEX lesson_by_session ON lesson (session_id)",
    ),
}
"""From each older version, the statements that lead to the next: as they were then, whatever is declared above."""


_CREATE_META = "CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)"
_READ_VERSION = "SELECT value FROM meta WHERE key = 'schema'"
_WRITE_VERSION = f"INSERT OR REPLACE INTO meta VALUES ('schema', '{VERSION}')"


def found_version(connection: sqlite3.Connection) -> int | None:
    """None: an empty database. Refuses what is no store, or a newer one, without writing anything."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return None
    row = connection.execute(_READ_VERSION).fetchone() if "meta" in tables else None
    if row is None or not str(row[0]).isdecimal():
        raise ConfigError("this SQLite database is not a store of Stenograph's")
    version = int(row[0])
    if version > VERSION:
        raise ConfigError(f"written by a newer Stenograph (schema {version}; this one reads {VERSION}): upgrade it")
    return version


def require_current(connection: sqlite3.Connection) -> None:
    """For those who only read: they cannot bring an older store forward."""
    if (found := found_version(connection)) != VERSION:
        told = "nothing was written yet" if found is None else f"written by an older Stenograph (schema {found})"
        raise ConfigError(f"{told}: `stenograph serve` on it once brings it up to date")


def prepare(connection: sqlite3.Connection, migrations: Mapping[int, tuple[str, ...]] = MIGRATIONS) -> None:
    """Creates the tables, or brings an older schema forward: in one transaction, so that a crash leaves either state.

    The version is written also where it is there already: a store that cannot be written is found out now.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _steps(found_version(connection), migrations):
            connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _steps(found: int | None, migrations: Mapping[int, tuple[str, ...]]) -> Iterator[str]:
    if found is None:
        yield from (_CREATE_META, *(table.create for table in TABLES), *INDEXES)
    for version in range(VERSION if found is None else found, VERSION):
        if version not in migrations:
            raise ConfigError(f"written by a Stenograph too old for this one (schema {version})")
        yield from migrations[version]
    yield _WRITE_VERSION
