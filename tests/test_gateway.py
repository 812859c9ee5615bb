"""What is handed to a gateway in Python is held to what HTTP takes: a session never holds what a store cannot keep."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stenograph import Gateway
from stenograph.errors import CallerError
from stenograph.store.sqlite import SqliteReader

HALF = "half a character: \ud800"


@pytest.mark.parametrize("half", [np.float64(0.5), np.float32(0.5), np.array(0.5)])
async def test_a_rewards_number_may_be_numpys(tmp_path: Path, half: Any) -> None:
    async with Gateway(engine="scripted=", store=tmp_path) as gateway:
        session = gateway.session("s", metadata={"seeds": np.arange(2)})
        steps: Any = np.int64(3)
        await session.reward(half, scores={"steps": steps}, metadata={"by": half})
        await session.finish()
    with SqliteReader(tmp_path) as reader:
        (kept,) = reader.facts()
    assert (kept.reward, kept.scores, kept.reward_metadata) == (0.5, {"steps": 3.0}, {"by": 0.5})
    assert (kept.state, kept.metadata) == ("completed", {"seeds": [0, 1]})


@pytest.mark.parametrize("right", [True, np.True_])
async def test_what_is_right_is_one(right: Any) -> None:
    async with Gateway(engine="scripted=") as gateway:
        session = gateway.session("s")
        await session.reward(right)
        assert session.record().facts.reward == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"reward": math.nan},
        {"reward": np.float32("inf")},
        {"reward": "much"},
        {"reward": 10**400},
        {"reward": np.ones(2)},
        {"reward": 1.0, "scores": {"steps": None}},
        {"reward": 1.0, "metadata": {"by": object()}},
        {"reward": 1.0, "metadata": {"by": HALF}},
    ],
)
async def test_a_reward_that_cannot_be_kept_is_refused_and_the_session_goes_on(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    async with Gateway(engine="scripted=", store=tmp_path) as gateway:
        session = gateway.session("s")
        with pytest.raises(CallerError):
            session.reward(**wrong)
        await session.reward(0.25)
        await session.finish()
    with SqliteReader(tmp_path) as reader:
        (kept,) = reader.facts()
    assert (kept.state, kept.reward, kept.scores) == ("completed", 0.25, {})


async def test_so_are_the_other_calls_words() -> None:
    async with Gateway(engine="scripted=") as gateway:
        session = gateway.session("s")
        for status, error in (("failed", HALF), ("gone", None)):
            with pytest.raises(CallerError):
                session.finish(status, error)
        for metadata in ({"by": HALF}, {"by": math.nan}, {"by": object()}):
            with pytest.raises(CallerError):
                gateway.session("t", metadata=metadata)
        assert [session.id for session in (gateway.session("t"),)] == ["t"]
