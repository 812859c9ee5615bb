"""The declaration, the database and the nouns say the same; older stores are brought forward, newer ones left alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stenograph.core import Batch, Call, Lesson, Part, SessionFacts, Teacher, Turn, WeightsSaid
from stenograph.errors import ConfigError, StoreError
from stenograph.store import schema
from stenograph.store.pack import Codec
from stenograph.store.schema import CALL, TABLES, VERSION, Table
from stenograph.store.sqlite import FILE, SqliteReader, SqliteStore
from stenograph.store.store import Blob
from tests.store.nouns import BATCHES, LESSONS, SAID, TAUGHT_BY, call, plain, specimen

DUMPS = {version: Path(__file__).with_name(f"version{version}.sql") for version in (1, 2, 3)}
"""One for every version there ever was: a specimen as that version wrote it. Add to it with each new version."""


@pytest.fixture
def fresh() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        yield connection


def layout(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def dumped(version: int, folder: Path) -> Path:
    """A folder as that version left it."""
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.executescript(DUMPS[version].read_text())
    return folder


def test_a_fresh_database_is_what_is_declared(fresh: sqlite3.Connection) -> None:
    schema.prepare(fresh)
    tables = {row["name"] for row in fresh.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"meta", *(table.name for table in TABLES)}
    for table in TABLES:
        found = [(row["name"], row["type"]) for row in fresh.execute(f"PRAGMA table_info({table.name})")]
        assert found == [(column.name, column.sql.split()[0]) for column in table.columns]
    assert schema.found_version(fresh) == VERSION


def test_every_noun_of_the_record_has_a_table() -> None:
    assert [table.noun for table in TABLES] == [
        SessionFacts,
        Call,
        Turn,
        Part,
        Blob,
        Batch,
        WeightsSaid,
        Teacher,
        Lesson,
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_field_has_one_place(table: Table[Any]) -> None:
    columns = [column.of for column in table.columns if column.of is not None]
    assert sorted([*columns, *table.apart, *table.rest]) == sorted(table.noun.__struct_fields__)
    assert bool(table.rest) == any(column.holds is schema.Holds.REST for column in table.columns)


def test_the_layout_of_a_version_never_changes(fresh: sqlite3.Connection) -> None:
    """A changed declaration needs a new VERSION, a migration and a dump."""
    assert set(DUMPS) == set(range(1, VERSION + 1))
    schema.prepare(fresh)
    with closing(sqlite3.connect(":memory:")) as dump:
        dump.executescript(DUMPS[VERSION].read_text())
        assert layout(dump) == layout(fresh)


@pytest.mark.parametrize("version", DUMPS)
async def test_what_every_version_wrote_is_still_read(version: int, tmp_path: Path) -> None:
    store = SqliteStore(dumped(version, tmp_path))
    assert plain(store.load("s")) == plain(specimen())
    assert store.batches() == (BATCHES if version >= 2 else ())
    assert store.weights() == (SAID if version >= 2 else ())
    assert store.teachers() == (TAUGHT_BY if version >= 3 else ())
    taught = store.lessons([one.key for one in LESSONS])
    assert plain(tuple(taught.values())) == plain(LESSONS if version >= 3 else ())
    await store.close()


@pytest.mark.parametrize("version", DUMPS)
def test_every_version_is_brought_to_the_layout_of_today(version: int, fresh: sqlite3.Connection) -> None:
    schema.prepare(fresh)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as older:
        older.executescript(DUMPS[version].read_text())
        schema.prepare(older)
        assert layout(older) == layout(fresh)


class LaterCall(Call):
    extra: int = 0


async def test_a_field_that_core_gains_is_carried_and_older_rows_get_its_default(tmp_path: Path) -> None:
    later = Codec(Table("call", LaterCall, CALL.columns))
    with SqliteReader(dumped(VERSION, tmp_path)) as reader, closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.row_factory = sqlite3.Row
        old = connection.execute("SELECT * FROM call WHERE id = 'c1'").fetchone()
        assert later.value(old).extra == 0
        row = later.row(LaterCall(**{**msgspec.structs.asdict(call("c3")), "extra": 7}))
        connection.execute(CALL.insert, row)
        new = connection.execute("SELECT * FROM call WHERE id = 'c3'").fetchone()
        assert later.value(new).extra == 7
        connection.commit()
        with pytest.raises(StoreError, match="unknown field `extra`"):
            reader.load("s")


def set_version(folder: Path, value: str) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("UPDATE meta SET value = ?", (value,))
        connection.commit()


@pytest.mark.parametrize("opener", [SqliteStore, SqliteReader])
def test_a_newer_store_is_refused_untouched(opener: type[SqliteStore | SqliteReader], tmp_path: Path) -> None:
    set_version(dumped(VERSION, tmp_path), str(VERSION + 1))
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(ConfigError, match=rf"newer Stenograph \(schema {VERSION + 1}; .*: upgrade") as refused:
        opener(tmp_path)
    assert str(tmp_path) in refused.value.message
    assert "\n" not in refused.value.message
    assert (tmp_path / FILE).read_bytes() == before
    assert not (tmp_path / f"{FILE}-wal").exists()


@pytest.mark.parametrize("opener", [SqliteStore, SqliteReader])
def test_somebody_elses_database_is_refused(opener: type[SqliteStore | SqliteReader], tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    with pytest.raises(ConfigError, match="not a store of Stenograph's"):
        opener(tmp_path)


def test_a_reader_does_not_migrate(tmp_path: Path) -> None:
    set_version(dumped(VERSION, tmp_path), "0")
    with pytest.raises(ConfigError, match=r"older Stenograph \(schema 0\): `stenograph serve` on it"):
        SqliteReader(tmp_path)


OLDER = ("ALTER TABLE call RENAME COLUMN context TO tokens", "UPDATE meta SET value = '0'")
FORWARD = {
    **schema.MIGRATIONS,
    0: ("ALTER TABLE call RENAME COLUMN tokens TO context", "UPDATE call SET parent = parent"),
}


@pytest.fixture
def older(fresh: sqlite3.Connection) -> sqlite3.Connection:
    """Version 0 never existed."""
    fresh.executescript(DUMPS[1].read_text())
    for statement in OLDER:
        fresh.execute(statement)
    return fresh


def test_an_older_store_is_brought_forward(older: sqlite3.Connection) -> None:
    schema.prepare(older, FORWARD)
    assert schema.found_version(older) == VERSION
    assert layout_of_columns(older) == [column.name for column in CALL.columns]
    assert older.execute("SELECT count(*) FROM call").fetchone()[0] == len(specimen().calls)


def layout_of_columns(connection: sqlite3.Connection) -> list[str]:
    return [row["name"] for row in connection.execute("PRAGMA table_info(call)")]


def test_a_migration_that_fails_leaves_the_older_store(older: sqlite3.Connection) -> None:
    before = layout(older)
    with pytest.raises(sqlite3.OperationalError):
        schema.prepare(older, {**FORWARD, 0: (*FORWARD[0], "ALTER TABLE nothing RENAME TO something")})
    assert layout(older) == before
    assert schema.found_version(older) == 0


def test_a_store_without_a_way_forward_is_refused(older: sqlite3.Connection) -> None:
    before = layout(older)
    with pytest.raises(ConfigError, match=r"too old for this one \(schema 0\)"):
        schema.prepare(older, {})
    assert layout(older) == before
