"""What is too much is said at once, with a time to come again, and takes nothing from those who are served."""

from __future__ import annotations

import asyncio

import pytest

from stenograph.engine.script import Script
from stenograph.store.memory import MemoryStore
from tests.laws.checks import check_session
from tests.stage import models
from tests.stage.stage import Clocked, Stage, user

HELLO = [user("hello")]
SLOW = Script(first_delay=60.0)


@pytest.fixture(scope="module")
def model() -> models.Model:
    return models.model(models.ALWAYS)


async def test_one_session_too_many_is_told_when_to_come_again(model: models.Model) -> None:
    async with Stage(model, MemoryStore(), max_open_sessions=2) as stage:
        for id in ("a", "b"):
            await stage.tell("/sessions", {"id": id})
        for path, body in (("/sessions", {"id": "c"}), ("/s/c/v1/chat/completions", {"model": "m", "messages": HELLO})):
            refused = await stage.http.post(path, json=body)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert "2 sessions are open" in refused.json()["error"]["message"]
        assert (await stage.say("a", HELLO)).complete, "an open one goes on"
        await stage.tell("/sessions/a/finish", {})
        await stage.tell("/sessions", {"id": "c"})


@pytest.mark.parametrize("gone", ["deleted", "expired"])
async def test_who_goes_makes_room(model: models.Model, gone: str) -> None:
    async with Clocked(model, MemoryStore(), max_open_sessions=1) as stage:
        await stage.tell("/sessions", {"id": "a", "ttl": 10})
        if gone == "deleted":
            assert (await stage.http.delete("/sessions/a")).status_code == 204
        else:
            stage.time += 11
            stage._at_desk().registry.expire()
        await stage.tell("/sessions", {"id": "b"})


async def test_one_call_too_many_is_refused_before_anything_is_done_for_it(model: models.Model) -> None:
    async with Stage(model, MemoryStore(), SLOW, max_calls=3) as stage:
        calls = [asyncio.create_task(stage.say("s", [user(f"hello {place}")])) for place in range(3)]
        for _ in calls:
            await stage.watched.arrived.get()
        for session in ("s", None):
            refused = await stage.say(session, HELLO, model=stage.model)
            assert refused.status == 429
            assert "3 calls are under way" in (refused.error or {})["message"]
        assert [view["id"] for view in (await stage.get("/sessions"))["sessions"]] == ["s"]
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        await stage.settled()
        stage.watched.script = Script()
        assert (await stage.say("s", HELLO)).complete, "the room is given back"
        await check_session(stage, "s")


async def test_the_lag_of_the_loop_is_told(model: models.Model) -> None:
    async with Stage(model, MemoryStore()) as stage:
        text = (await stage.http.get("/metrics")).text
    assert "stenograph_loop_lag_seconds_bucket" in text
