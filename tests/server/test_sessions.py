"""What a rollout worker does to sessions while their agents go on calling."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from stenograph.core import JSON
from stenograph.engine.script import Script
from stenograph.errors import NotFound
from stenograph.store.memory import MemoryStore
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


# ------------------------------------------------------------------------------------------------------- which session


KEYED: JSON = {"authorization": "Bearer KEY"}
WHICH: dict[str, tuple[str, JSON, JSON, str | None]] = {
    "the path before all": ("/s/path", {"x-session-id": "header"} | KEYED, {"session_id": "body"}, "path"),
    "then the header": ("", {"x-session-id": "header"} | KEYED, {"session_id": "body"}, "header"),
    "then a session's key": ("", KEYED, {"session_id": "body"}, "keyed"),
    "whose scheme is of any case": ("", {"authorization": "bearer KEY"}, {"session_id": "body"}, "keyed"),
    "which may be an x-api-key": ("", {"x-api-key": "KEY"}, {"session_id": "body"}, "keyed"),
    "beside a placeholder, too": ("", {"authorization": "Bearer EMPTY", "x-api-key": "KEY"}, {}, "keyed"),
    "then the body": ("", {"authorization": "Bearer EMPTY"}, {"session_id": "body"}, "body"),
    "else one of its own": ("", {"authorization": "Bearer sk-x"}, {}, None),
}
"""Where the call goes, its headers and its fields; KEY is the key of the session `keyed`."""


@pytest.mark.parametrize("which", WHICH)
async def test_a_call_is_its_session_s(model: models.Model, which: str) -> None:
    path, headers, fields, expected = WHICH[which]
    async with Stage(model, MemoryStore(), model_alias=["m"]) as stage:
        key = (await stage.tell("/sessions", {"id": "keyed"}))["api_key"]
        sent = {name: value.replace("KEY", key) for name, value in headers.items()}
        body = {"model": "m", "messages": HELLO, "max_tokens": 3, **fields}
        answer = await stage.http.post(f"{path}/v1/chat/completions", json=body, headers=sent)
        told = answer.headers["x-session-id"]
        assert told == (expected or told)
        assert (told in ("keyed", "path", "header", "body")) == (expected is not None)
        assert (await stage.get(f"/sessions/{told}"))["turns"] == 1


async def test_with_an_admin_key_only_its_holder_opens_and_looks(model: models.Model) -> None:
    async with Stage(model, MemoryStore(), admin_key="secret", default_session="common") as stage:
        admin = {"authorization": "Bearer EMPTY", "x-api-key": "secret"}
        assert (await stage.http.post("/sessions", json={"id": "s"})).status_code == 401
        opened = await stage.http.post("/sessions", json={"id": "s"}, headers=admin)
        key = {"authorization": f"Bearer {opened.json()['api_key']}"}
        assert (await stage.http.get("/sessions/s", headers=key)).status_code == 401
        assert (await stage.http.get("/sessions/s", headers=admin)).status_code == 200
        assert (await stage.say("s", HELLO)).status == 401
        assert (await stage.say("s", HELLO, {"authorization": "Bearer secret"})).status == 401
        assert (await stage.say("s", HELLO, key)).complete
        assert (await stage.say("unknown", HELLO, key)).status == 404


# ------------------------------------------------------------------------------------------------------------- the end


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_a_session_that_is_cancelled_ends_what_is_in_flight(
    model: models.Model, opened: tuple[Store, Load], stream: bool
) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        await stage.say("s", HELLO)
        before = snapshot(stage, ["s"])
        stage.watched.forget()
        stage.watched.gate.clear()
        call = asyncio.create_task(stage.say("s", HELLO, stream=stream))
        request_id = await stage.watched.arrived.get()
        assert (await stage.tell("/sessions/s/finish", {"status": "cancelled"}))["state"] == "cancelled"
        assert ((await call).error or {})["code"] == "aborted"
        assert stage.watched.logged(request_id).aborted
        assert snapshot(stage, ["s"]) == before
        refused = await stage.say("s", HELLO)
        assert (refused.status, (refused.error or {})["code"]) == (409, "session_finished")


@pytest.mark.parametrize("status", ["completed", "failed", "timeout"])
async def test_a_session_that_ends_otherwise_lets_what_is_in_flight_end(model: models.Model, status: str) -> None:
    async with Stage(model, MemoryStore()) as stage:
        stage.watched.gate.clear()
        call = asyncio.create_task(stage.say("s", HELLO))
        await stage.watched.arrived.get()
        await stage.tell("/sessions/s/finish", {"status": status})
        stage.watched.gate.set()
        assert (await call).complete
        assert (await stage.say("s", HELLO)).status == 409
        assert (await stage.tell("/sessions/s/reward", {"reward": 0.5}))["reward"] == 0.5
        assert (await stage.http.post("/sessions/s/finish", json={"status": "cancelled"})).status_code == 409
        (sample,) = (await stage.get("/sessions/s/samples"))["samples"]
        assert (sample["status"], sample["reward"], sample["reward_revision"]) == (status, 0.5, 1)


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
