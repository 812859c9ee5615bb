"""Law 5 against other processes: killed at any moment, writing while others read, or wanting the same folder."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stenograph.errors import ConfigError
from stenograph.store.sqlite import FILE, SqliteReader, SqliteStore
from stenograph.store.tables import Reads
from tests.store.committing import promised, session_of
from tests.store.nouns import facts, plain

ROOT = Path(__file__).resolve().parents[2]
KILLS = 6


@contextmanager
def committing(folder: Path, run: str) -> Iterator[subprocess.Popen[str]]:
    """Another process at work on `folder`, from its first commit on until it is killed."""
    command = [sys.executable, "-m", "tests.store.committing", str(folder), run]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def printed(process: subprocess.Popen[str], lines: int) -> set[str]:
    assert process.stdout is not None
    return {process.stdout.readline().strip() for _ in range(lines)}


def killed(process: subprocess.Popen[str]) -> set[str]:
    """What it had printed, but nobody had read, when it died."""
    assert process.stdout is not None
    process.kill()
    return set(process.stdout.read().split())


def whole_calls(reader: Reads, sessions: set[str]) -> set[str]:
    """Whatever is there is there entirely, also where nobody was told of it yet."""
    found = [reader.load(id) for id in sessions]
    calls = [call for session in found if session is not None for call in session.calls]
    for call in calls:
        assert plain(call) == plain(promised(call.turns[0].call.id))
    return {call.turns[0].call.id for call in calls}


def every_session(reader: Reads) -> set[str]:
    return {each.id for each in reader.facts()}


def test_what_was_committed_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(5)
    told: set[str] = set()
    for run in range(KILLS):
        with committing(tmp_path, str(run)) as process:
            told |= printed(process, chance.randrange(1, 150)) | killed(process)
        with SqliteReader(tmp_path) as reader:
            assert told <= whole_calls(reader, every_session(reader))


def test_a_reader_leaves_what_a_killed_serve_left(tmp_path: Path) -> None:
    """Bringing the log back into the file is for the next `serve` to do: whoever reads may not be allowed to."""
    with committing(tmp_path, "0") as process:
        told = printed(process, 20) | killed(process)
    before = [(tmp_path / name).read_bytes() for name in (FILE, f"{FILE}-wal")]
    with SqliteReader(tmp_path) as reader:
        assert told <= whole_calls(reader, every_session(reader))
    assert [(tmp_path / name).read_bytes() for name in (FILE, f"{FILE}-wal")] == before


async def test_a_store_opens_again_after_a_kill(tmp_path: Path) -> None:
    with committing(tmp_path, "0") as process:
        told = printed(process, 20) | killed(process)
    store = SqliteStore(tmp_path)
    await store.commit([facts("after"), promised("after-1")])
    assert told | {"after-1"} <= whole_calls(store, every_session(store))
    await store.close()


def test_a_reader_sees_every_commit_of_a_serve_that_goes_on(tmp_path: Path) -> None:
    with committing(tmp_path, "0") as process:
        printed(process, 1)
        with SqliteReader(tmp_path) as reader:
            for _ in range(20):
                told = printed(process, 5)
                assert told <= whole_calls(reader, {session_of(id) for id in told})


def test_a_second_process_is_refused_the_folder(tmp_path: Path) -> None:
    with committing(tmp_path, "0") as process:
        printed(process, 1)
        with pytest.raises(
            ConfigError, match=f"in use by another stenograph .process {process.pid}.: stop it"
        ) as refused:
            SqliteStore(tmp_path)
        assert str(tmp_path) in refused.value.message
        assert "\n" not in refused.value.message
        assert len(printed(process, 5)) == 5
