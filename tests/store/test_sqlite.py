"""The folder on disk: who may open it, what is said where that cannot be, and what is left behind."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stenograph.errors import ConfigError, StoreError
from stenograph.store.sqlite import FILE, SqliteReader, SqliteStore
from stenograph.store.store import StoredSession
from tests.store.nouns import committed, facts, plain, records, specimen

NOBODY = 65534


async def filled(folder: Path, session: StoredSession) -> Path:
    store = SqliteStore(folder)
    await store.commit(records(session))
    await store.close()
    return folder


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of our own as somebody whom file modes hold back: root, as whom containers run tests, is not."""
    with tempfile.TemporaryDirectory() as name:
        me = os.geteuid()
        os.chown(name, NOBODY if me == 0 else me, -1)
        os.seteuid(NOBODY if me == 0 else me)
        try:
            yield Path(name)
        finally:
            os.seteuid(me)


async def test_a_store_outlives_its_process(tmp_path: Path) -> None:
    store = SqliteStore(await filled(tmp_path / "deep" / "folder ?#%", specimen()))
    assert plain(store.load("s")) == plain(specimen())
    await store.close()


async def test_it_is_as_durable_as_law_5_wants(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._writer._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    await store.close()


async def test_closing_leaves_one_file_and_the_lock(tmp_path: Path) -> None:
    await filled(tmp_path, specimen())
    assert sorted(os.listdir(tmp_path)) == ["lock", FILE]


async def test_close_waits_for_every_commit_under_way(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.commit([facts()])
    commits = [asyncio.ensure_future(store.commit([committed(f"{place}")])) for place in range(50)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*commits)
    with SqliteReader(tmp_path) as reader:
        found = reader.load("s")
        assert found is not None
        assert len(found.calls) == 50


async def test_one_store_at_a_time(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    with pytest.raises(ConfigError, match=rf"in use by another stenograph \(process {os.getpid()}\)"):
        SqliteStore(tmp_path)
    await store.commit([facts()])
    await store.close()
    await SqliteStore(tmp_path).close()


async def test_a_store_that_could_not_be_opened_gives_the_lock_back(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"x" * 5000)
    with pytest.raises(ConfigError):
        SqliteStore(tmp_path)
    (tmp_path / FILE).unlink()
    await SqliteStore(tmp_path).close()


async def test_a_reader_reads_what_is_there(tmp_path: Path) -> None:
    with SqliteReader(await filled(tmp_path, specimen())) as reader:
        assert plain(reader.load("s")) == plain(specimen())
        assert plain(list(reader.facts())) == plain([specimen().facts])
        assert reader.load("nobody") is None
        assert reader.blob("nothing") is None


async def test_a_reader_neither_takes_the_lock_nor_changes_the_record(tmp_path: Path) -> None:
    before = (await filled(tmp_path, specimen()) / FILE).read_bytes()
    with SqliteReader(tmp_path) as reader:
        list(reader.facts())
        assert (tmp_path / FILE).read_bytes() == before
        await SqliteStore(tmp_path).close()


async def test_a_reader_does_not_stop_the_writer(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.commit([facts("a"), facts("b")])
    with SqliteReader(tmp_path) as reader:
        listing = reader.facts()
        next(listing)
        await store.commit([facts("c")])
        await store.close()
        assert [each.id for each in reader.facts()] == ["a", "b", "c"]


@pytest.mark.parametrize("there", [True, False])
def test_a_reader_creates_nothing(there: bool, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    if there:
        folder.mkdir()
    with pytest.raises(ConfigError, match=f"^store {folder}: no store here"):
        SqliteReader(folder)
    assert folder.exists() is there
    assert [*tmp_path.rglob("*")] == [folder] * there


def one_line(error: ConfigError | StoreError) -> bool:
    return "\n" not in error.message and "Traceback" not in error.message


@pytest.mark.parametrize("opener", [SqliteStore, SqliteReader])
@pytest.mark.parametrize("damage", ["garbage", "a torn page", "no end"])
async def test_a_damaged_file_is_said(opener: type[SqliteStore | SqliteReader], damage: str, tmp_path: Path) -> None:
    file = await filled(tmp_path, specimen()) / FILE
    sound = file.read_bytes()
    torn = {
        "garbage": b"garbage" * 1000,
        "a torn page": sound[:100] + b"\xff" * 3996 + sound[4096:],
        "no end": sound[:5000],
    }
    file.write_bytes(torn[damage])
    with pytest.raises(ConfigError, match=f"^store {tmp_path}: its file is damaged") as refused:
        opener(tmp_path)
    assert one_line(refused.value)


async def test_damage_that_shows_only_later_is_said_too(tmp_path: Path) -> None:
    await filled(tmp_path, specimen())
    with closing(sqlite3.connect(tmp_path / FILE)) as other:
        other.execute("UPDATE call SET context = x'000000'")
        other.execute("UPDATE session SET rest = '{'")
        other.commit()
    with SqliteReader(tmp_path) as reader:
        with pytest.raises(StoreError, match="truncated") as refused:
            list(reader.facts())
        assert one_line(refused.value)
        with pytest.raises(StoreError):
            reader.load("s")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match=f"^store {file}: it is a file, not a folder"):
        SqliteStore(file)
    with pytest.raises(ConfigError, match="it is inside a file, not a folder"):
        SqliteStore(file / "inside")
    with pytest.raises(ConfigError, match="no store here"):
        SqliteReader(file)


def test_a_folder_that_cannot_be_written_is_said(unprivileged: Path) -> None:
    unprivileged.chmod(0o500)
    with pytest.raises(ConfigError, match=f"^store {unprivileged}: it cannot be written") as refused:
        SqliteStore(unprivileged)
    assert one_line(refused.value)
    with pytest.raises(ConfigError, match=f"^store {unprivileged}/inside: it cannot be written"):
        SqliteStore(unprivileged / "inside")


async def test_a_file_that_cannot_be_written_is_found_out_before_serving(unprivileged: Path) -> None:
    (await filled(unprivileged, specimen()) / FILE).chmod(0o400)
    with pytest.raises(ConfigError, match="its file or its folder is read-only"):
        SqliteStore(unprivileged)
    with SqliteReader(unprivileged) as reader:
        assert plain(reader.load("s")) == plain(specimen())
