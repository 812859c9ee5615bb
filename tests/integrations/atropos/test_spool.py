"""The folder, whatever happens to its process: a group is in one place at each moment, and no place is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stenograph.errors import ConfigError, StoreError
from stenograph.integrations.atropos.spool import Entry, Life, Refused, Spool
from tests.conftest import ROOT


def entry(number: int, lease: str | None = None) -> Entry:
    return Entry(data=msgspec.Raw(b'{"number":%d}' % number), lease=lease)


def put(spool: Spool, number: int) -> int:
    place = spool.put(entry(number))
    spool.release(place)
    return place


STEPS = st.lists(st.sampled_from(["put", "leased", "release", "accept", "refuse", "forget", "take_back", "die"]))


@given(STEPS)
def test_every_group_that_was_put_is_in_the_folder_that_it_has_come_to(steps: list[str]) -> None:
    """`die`: the process is gone and another opens the folder; what is on disk is all that it knows."""
    with tempfile.TemporaryDirectory() as folder:
        spool, where = Spool(Path(folder)), dict[int, str]()
        for step in steps:
            spool = _taken(spool, where, step, Path(folder))
            waiting = [number for number, at in sorted(where.items()) if at == "waiting"]
            assert spool.waiting == waiting
            assert spool.sent == [number for number, at in sorted(where.items()) if at == "sent"]
            assert _on_disk(Path(folder)) == {number: at for number, at in where.items() if at != "gone"}
        spool.close()


def _taken(spool: Spool, where: dict[int, str], step: str, folder: Path) -> Spool:
    def first(at: str) -> int | None:
        return next((number for number, place in sorted(where.items()) if place == at), None)

    match step:
        case "put":
            where[put(spool, 0)] = "waiting"
        case "leased":
            where[spool.put(entry(0, "lease"))] = "leased"
        case "release" if number := first("leased"):
            spool.release(number)
            where[number] = "waiting"
        case "accept" if number := first("waiting"):
            spool.accept(number)
            where[number] = "sent"
        case "refuse" if number := first("waiting"):
            spool.refuse(number, 422, "wrong", 0.0)
            where[number] = "refused"
        case "forget" if number := first("sent"):
            spool.forget(number)
            where[number] = "gone"
        case "take_back":
            spool.take_back()
            where.update({number: "waiting" for number, at in where.items() if at == "sent"})
        case "die":
            spool.close()
            spool = Spool(folder)
            assert set(spool.leases()) == {number for number, at in where.items() if at == "leased"}
    return spool


def _on_disk(folder: Path) -> dict[int, str]:
    found = [(int(path.stem), path.parent.name) for path in folder.glob("*/*.json")]
    assert len(found) == len(dict(found))
    return dict(found)


def test_what_put_returned_from_is_there_after_a_kill(tmp_path: Path) -> None:
    """It is killed at a random moment of putting, many times over, and says what has returned."""
    told: list[int] = []
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.integrations.atropos.putting", str(tmp_path)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            told += [int(process.stdout.readline()) for _ in range(7)]
            os.kill(process.pid, signal.SIGKILL)
            told += [int(line) for line in process.stdout.read().split(b"\n")[:-1]]
    spool = Spool(tmp_path)
    assert set(told) <= set(spool.waiting)
    assert len(spool.waiting) - len(told) <= 5, "at most the one that was under way, of each"
    assert all(json.loads(bytes(spool.read(number).data)) == {"number": 0} for number in spool.waiting)
    spool.close()


def test_what_was_half_written_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "waiting").mkdir()
    (tmp_path / "waiting" / "000000000007.new").write_text('{"data": ')
    spool = Spool(tmp_path)
    assert spool.waiting == []
    assert put(spool, 1) == 1
    spool.close()


def test_a_number_is_not_given_again_while_anything_has_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.refuse(put(spool, 1), None, "too long", 5.0)
    spool.close()
    spool = Spool(tmp_path)
    assert put(spool, 2) == 2
    kept = json.loads((tmp_path / "refused" / "000000000001.json").read_bytes())
    told = {"data": {"number": 1}, "lease": None, "any_length": False}
    assert kept == {**told, "status": None, "reason": "too long", "at": 5.0}
    spool.close()


def test_what_is_refused_before_it_is_sent_goes_there_at_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put(Refused(data=msgspec.Raw(b"{}"), lease="l", status=None, reason="no reward", at=0.0))
    assert (spool.waiting, spool.leases(), _on_disk(tmp_path)) == ([], {}, {1: "refused"})
    spool.close()


def test_one_process_has_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with pytest.raises(ConfigError, match="in use by another stenograph"):
        Spool(tmp_path)
    spool.close()
    Spool(tmp_path).close()


def test_a_disk_that_fails_is_told_and_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            spool.put(entry(1))
    assert _on_disk(tmp_path) == {}
    assert put(spool, 2) == 2
    spool.close()


def test_who_the_api_knows_us_as_is_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.life() is None
    life = Life(alias="a", body={"desired_name": "x-a"}, env_id=3)
    spool.set_life(life)
    spool.close()
    spool = Spool(tmp_path)
    assert spool.life() == life
    spool.close()
