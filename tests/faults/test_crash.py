"""The short form of `make soak`: what is told is kept, whenever the gateway dies."""

from __future__ import annotations

from pathlib import Path

from tests.faults.crash import crashes

KILLS = 4


async def test_killed_under_load_nothing_is_lost_and_nothing_invented(tmp_path: Path) -> None:
    outcome = await crashes(tmp_path, KILLS, seed=3)
    assert outcome.holds, outcome
    assert outcome.told > KILLS, "the load was none"
