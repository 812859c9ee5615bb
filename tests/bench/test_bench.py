"""The harness on tiny numbers: that it measures every contender and leaves nothing behind. Nothing is timed here."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import Process
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as bench
from bench import compare, context, first_token
from bench.contenders import check_recorded, contenders
from bench.processes import serving
from bench.report import QUICK, Spread, Table


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The process ids of all servers that were started."""
    pids: list[int] = []
    start = asyncio.create_subprocess_exec

    async def noted(*command: Any, **settings: Any) -> Process:
        process = await start(*command, **settings)
        pids.append(process.pid)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    return pids


def alive(pid: int) -> bool:
    """Or a zombie, which nobody has waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_quick_run_compares_every_contender_and_leaves_no_process(
    started: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    before = bench.RESULTS.read_bytes() if bench.RESULTS.exists() else None
    bench.main(["--quick", "--only", "compare"])
    said = capsys.readouterr().out
    for column in ("direct : floor", "stenograph : floor"):
        assert column in said
    assert len(started) == 3
    assert not any(map(alive, started))
    assert (bench.RESULTS.read_bytes() if bench.RESULTS.exists() else None) == before, "a quick run is no result"


def test_every_row_has_a_positive_ratio_for_each_contender(started: list[int]) -> None:
    throughput, cost = compare.run(QUICK)
    [row] = throughput.rows
    ratios = dict(zip(throughput.head, row, strict=True))
    for name in ("direct", "floor", "stenograph", "direct : floor", "stenograph : floor"):
        median, least, most = _figures(ratios[name])
        assert 0 < least <= median <= most
    assert [row[cost.head.index("contender")] for row in cost.rows] == ["floor", "stenograph"]


def test_the_length_of_a_history_is_a_benchmark(started: list[int]) -> None:
    [table] = context.run(QUICK)
    ratios = [_figures(row[table.head.index("to the shortest")]) for row in table.rows]
    assert ratios[0] == [1.0, 1.0, 1.0]
    assert len(ratios) == 2
    assert not any(map(alive, started))


def _figures(cell: str) -> list[float]:
    return [float(word) for word in cell.replace(",", "").replace("(", "").replace(")", "").replace("to", "").split()]


def test_the_first_word_is_timed_on_both_sides(started: list[int]) -> None:
    [table] = first_token.run(QUICK)
    [row] = table.rows
    direct, ours, ratio = (float(cell.split()[0]) for cell in row[2:])
    assert min(direct, ours) >= first_token.PACE * 1000
    assert ratio > 0
    assert not any(map(alive, started))


def test_a_run_that_fails_leaves_no_process(started: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*_: object) -> None:
        raise RuntimeError("the load broke off")

    monkeypatch.setattr(compare, "play", failing)
    with pytest.raises(RuntimeError, match="the load broke off"):
        compare.run(QUICK)
    assert len(started) == 3
    assert not any(map(alive, started))


async def test_a_session_that_was_not_recorded_fails_the_run(started: list[int], tmp_path: Path) -> None:
    async with contenders(tmp_path, engine_takes=0.0) as (_, _, gateway):
        with pytest.raises(RuntimeError, match="HTTP 404"):
            await check_recorded(gateway, "never-played", turns=1)
    assert not any(map(alive, started))


def test_a_server_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    async def start() -> None:
        async with serving("bench.floor", errors=tmp_path / "floor.log"):
            raise AssertionError("started without the engine's address")

    with pytest.raises(RuntimeError, match="did not start") as caught:
        asyncio.run(start())
    assert "IndexError" in "".join(caught.value.__notes__)


def test_ratios_are_taken_round_by_round() -> None:
    """A machine that is slow in one round is so for both sides; the ratio of the medians would be 2."""
    assert Spread.of_ratios([4.0, 1.0, 6.0], [4.0, 1.0, 2.0]) == Spread(1.0, 1.0, 3.0)


def test_a_table_whose_rows_have_other_columns_than_its_head_is_refused() -> None:
    with pytest.raises(ValueError, match="not as long"):
        Table("wrong", ("a", "b"), (("1",),))
