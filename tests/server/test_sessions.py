"""What a rollout worker does to sessions while their agents go on calling."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from stenograph.engine.script import Script
from stenograph.errors import NotFound
from stenograph.store.store import Store
from tests.laws.checks import check_session
from tests.laws.record import snapshot
from tests.stage import models, stores
from tests.stage.stage import Stage, user
from tests.stage.stores import Load

HELLO = [user("hello")]


@pytest.fixture(scope="module")
def model() -> models.Model:
    return models.model(models.ALWAYS)


@pytest.fixture(params=stores.STORES)
def opened(request: pytest.FixtureRequest) -> Iterator[tuple[Store, Load]]:
    with stores.opened(request.param) as store:
        yield store


# ------------------------------------------------------------------------------------------------------------ deleting


async def spoken_to(stage: Stage, calls: int) -> Counter[int]:
    """An agent that goes on, whatever it is told: how often it was told what."""
    return Counter([(await stage.say("s", [user(f"call {place}")])).status for place in range(calls)])


async def test_a_session_that_is_called_while_it_is_deleted_is_gone_or_another_one(
    model: models.Model, opened: tuple[Store, Load]
) -> None:
    """What is in memory afterwards is what is on disk: no turn of the first session is under the name of the second."""
    store, load = opened
    async with Stage(model, store, Script(longest=5), load=load) as stage:
        for _ in range(3):
            await stage.say("s", HELLO)
            agents = [asyncio.create_task(spoken_to(stage, 6)) for _ in range(4)]
            await stage.watched.arrived.get()
            assert (await stage.http.delete("/sessions/s")).status_code == 204
            assert set().union(*await asyncio.gather(*agents)) <= {200, 400, 409}
            await stage.say("s", HELLO)
            snapshot(stage, ["s"])
            await check_session(stage, "s")


async def test_what_is_said_of_a_session_that_was_deleted_does_not_bring_it_back(
    model: models.Model, opened: tuple[Store, Load]
) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        session = stage.session("s")
        await stage.say("s", HELLO)
        assert (await stage.http.delete("/sessions/s")).status_code == 204
        with pytest.raises(NotFound, match="there is no session s"):
            await session.reward(1.0)
        assert load("s") is None
        assert (await stage.get("/sessions"))["sessions"] == []
