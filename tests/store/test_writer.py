"""One writer for many callers: groups, and what one caller's trouble does to the others (nothing)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from stenograph.core import SessionFacts
from stenograph.errors import StoreError
from stenograph.store import schema
from stenograph.store.store import Record
from stenograph.store.tables import Reads, statements
from stenograph.store.writer import Writer
from tests.store.nouns import committed, facts

Commit: TypeAlias = Callable[[Sequence[Record]], "asyncio.Future[None]"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Not in WAL mode: the writer does not ask how a file keeps its promises."""
    return tmp_path / "file.db"


def connect(file: Path, timeout: float = 60.0) -> sqlite3.Connection:
    return sqlite3.connect(file, timeout=timeout, isolation_level=None, check_same_thread=False)


@pytest.fixture
async def connection(file: Path) -> sqlite3.Connection:
    connection = connect(file)
    connection.execute("PRAGMA foreign_keys = ON")
    schema.prepare(connection)
    return connection


@pytest.fixture
async def writer(connection: sqlite3.Connection) -> AsyncIterator[Writer]:
    writer = Writer(connection)
    yield writer
    await asyncio.to_thread(writer.close)


@pytest.fixture
def commit(writer: Writer) -> Commit:
    return lambda records: asyncio.wrap_future(writer.submit(statements(records)))


@contextmanager
def held(file: Path) -> Iterator[None]:
    """The write lock is somebody else's, so everything that is submitted meanwhile waits together."""
    with closing(connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def ids(file: Path) -> set[str]:
    with closing(connect(file)) as other:
        return {each.id for each in Reads(other).facts()}


async def outcomes(commits: Sequence[asyncio.Future[None]]) -> list[str | None]:
    """What each was told: None is success."""
    found = await asyncio.gather(*commits, return_exceptions=True)
    assert all(each is None or isinstance(each, StoreError) for each in found)
    return [None if each is None else str(each) for each in found]


async def test_what_waits_together_is_committed_together(writer: Writer, commit: Commit, file: Path) -> None:
    with held(file):
        commits = [commit([facts(f"{place}")]) for place in range(200)]
    assert await outcomes(commits) == [None] * 200
    assert len(ids(file)) == 200
    assert writer.transactions <= 2  # the first may have been taken alone


async def test_a_lone_commit_does_not_wait_for_company(writer: Writer, commit: Commit) -> None:
    for place in range(3):
        await commit([facts(f"{place}")])
    assert writer.transactions == 3


async def test_a_failing_record_fails_its_own_commit_only(commit: Commit, file: Path) -> None:
    await commit([facts(), committed("c")])
    with held(file):
        commits = [
            commit([facts("a")]),
            commit([facts("b"), committed("c")]),
            commit([facts("x\ud800")]),
            commit([committed("d", session="nobody")]),
            commit([facts("e")]),
        ]
    first, again, unbindable, orphan, last = await outcomes(commits)
    assert (first, last) == (None, None)
    assert again is not None
    assert "never written again" in again
    assert unbindable is not None
    assert "surrogates" in unbindable
    assert orphan is not None
    assert "is not in it" in orphan
    assert ids(file) == {"s", "a", "e"}


def large(id: str) -> SessionFacts:
    return facts(id, metadata={"text": "x" * 100_000})


async def test_a_full_disk_is_said_and_the_store_goes_on_when_there_is_room(
    connection: sqlite3.Connection, commit: Commit, file: Path
) -> None:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    with held(file):
        commits = [commit([facts("small")]), commit([large("large")]), commit([facts("little")])]
    small, refused, little = await outcomes(commits)
    assert (small, little) == (None, None)
    assert refused is not None
    assert "its disk is full" in refused
    assert ids(file) == {"small", "little"}
    connection.execute(f"PRAGMA max_page_count = {pages + 400}")
    await commit([large("large")])
    assert ids(file) == {"small", "little", "large"}


async def test_a_disk_that_turns_read_only_is_said(connection: sqlite3.Connection, commit: Commit, file: Path) -> None:
    connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="its file or its folder is read-only"):
        await commit([facts()])
    connection.execute("PRAGMA query_only = OFF")
    await commit([facts()])
    assert ids(file) == {"s"}


async def test_a_lock_that_is_never_let_go_is_said_to_all_at_once(
    connection: sqlite3.Connection, commit: Commit, file: Path
) -> None:
    connection.execute("PRAGMA busy_timeout = 100")
    begun: list[str] = []
    connection.set_trace_callback(begun.append)
    with held(file):
        told = await outcomes([commit([facts(f"{place}")]) for place in range(50)])
    assert begun.count("BEGIN IMMEDIATE") <= 2
    assert all(each is not None and "another program holds its write lock" in each for each in told)
    await commit([facts()])
    assert ids(file) == {"s"}


async def test_a_commit_that_is_cancelled_harms_no_other(commit: Commit, file: Path) -> None:
    with held(file):
        commits = [commit([facts(f"{place}")]) for place in range(9)]
        for cancelled in commits[1::2]:
            cancelled.cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*commits[::2])
    assert ids(file) >= {"0", "2", "4", "6", "8"}
    await commit([facts("next")])


async def test_closing_settles_what_waits_and_refuses_the_rest(writer: Writer, commit: Commit, file: Path) -> None:
    with held(file):
        commits = [commit([facts(f"{place}")]) for place in range(9)]
        closing_ = asyncio.ensure_future(asyncio.to_thread(writer.close))
        await asyncio.sleep(0)
    await closing_
    assert await outcomes(commits) == [None] * 9
    with pytest.raises(StoreError, match="closed"):
        commit([facts()])
    assert len(ids(file)) == 9


def test_a_waiter_whose_loop_is_gone_stops_nobody(connection: sqlite3.Connection, file: Path) -> None:
    writer = Writer(connection)

    async def leave() -> None:
        asyncio.wrap_future(writer.submit(statements([facts("left")])))

    with held(file):
        asyncio.run(leave())
    writer.submit(statements([facts("next")])).result()
    writer.close()
    assert ids(file) == {"left", "next"}
