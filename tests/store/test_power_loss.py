"""Power loss: the log as a disk may leave it, cut off or torn at every frame.

What was synced before the cut is there, whole; what was not is gone, whole. A frame that is torn ends the log for
SQLite, which is what `synchronous=FULL` counts on: an answer left only when all frames before it were on the disk.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stenograph.store.sqlite import FILE, SqliteStore
from tests.store.committing import promised, session_of
from tests.store.nouns import facts, plain

WAL = f"{FILE}-wal"
HEADER = 32
"""Bytes before the log's first frame, and 24 before the page in each (SQLite's file format, 4.1)."""
FRAME_HEADER = 24
COMMITS = [f"0.{number // 4}-{number}" for number in range(8)]
Damage = Callable[[bytes, int], bytes]


def cut(log: bytes, at: int) -> bytes:
    return log[:at]


def torn(log: bytes, at: int) -> bytes:
    """A sector that was never written: zeros, and the rest behind it as it was meant."""
    return log[: at + 4] + bytes(512) + log[at + 516 :]


def flipped(log: bytes, at: int) -> bytes:
    place = at + FRAME_HEADER + 100
    return log[:place] + bytes([log[place] ^ 1]) + log[place + 1 :] if place < len(log) else log


@pytest.fixture
async def left(tmp_path: Path) -> tuple[Path, list[int]]:
    """A store that was never closed, and how long its log was after each commit."""
    store = SqliteStore(tmp_path / "running")
    synced = []
    for id in COMMITS:
        await store.commit([facts(session_of(id)), promised(id)])
        synced.append((tmp_path / "running" / WAL).stat().st_size)
    shutil.copytree(tmp_path / "running", tmp_path / "left")
    await store.close()
    return tmp_path / "left", synced


async def recovered(folder: Path, left: Path, log: bytes) -> list[str]:
    """What a store holds that was opened on this; it has to be whole, and take new turns."""
    shutil.copytree(left, folder)
    (folder / WAL).write_bytes(log)
    store = SqliteStore(folder)
    found = [call for each in store.facts() if (session := store.load(each.id)) for call in session.calls]
    for call in found:
        assert plain(call) == plain(promised(call.turns[0].call.id))
    await store.commit([facts("after"), promised("after-1")])
    await store.close()
    return [call.turns[0].call.id for call in found]


@pytest.mark.parametrize("damage", [cut, torn, flipped])
async def test_a_log_that_ends_at_any_frame_holds_every_commit_before_it(
    left: tuple[Path, list[int]], damage: Damage, tmp_path: Path
) -> None:
    folder, synced = left
    log = (folder / WAL).read_bytes()
    page = int.from_bytes(log[8:12], "big")
    frames = range(HEADER, len(log) + 1, FRAME_HEADER + page)
    assert len(frames) > len(COMMITS), "a commit of one page would prove little"
    for place, at in enumerate(frames):
        for inside in (0, FRAME_HEADER + 7) if damage is cut else (0,):
            there = await recovered(tmp_path / f"{place}.{inside}", folder, damage(log, min(at + inside, len(log))))
            safe = sum(length <= at for length in synced)
            assert there == COMMITS[:safe], (damage.__name__, place)
