"""Complete groups, as trainers meet them: what makes one, what is too old, and the same stream in Python."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stenograph import Group
from stenograph.core import JSON, Part
from stenograph.origin import Weights
from stenograph.store.memory import MemoryStore
from tests.stage import models
from tests.stage.stage import Clocked, user
from tests.stage.stores import Lasting


@pytest.fixture(scope="module")
def model() -> models.Model:
    return models.model(models.ALWAYS)


@pytest.fixture
async def stage(model: models.Model) -> AsyncIterator[Clocked]:
    async with Clocked(model, MemoryStore()) as one:
        yield one


async def ended(stage: Clocked, id: str, *, turns: int = 0, status: str = "completed", **fields: JSON) -> None:
    await stage.tell("/sessions", {"id": id, "group": "g", "group_size": 2, **fields})
    for _ in range(turns):
        assert (await stage.say(id, [user("hello")])).complete
    await stage.tell(f"/sessions/{id}/finish", {"status": status})


async def leased(stage: Clocked, **wanted: JSON) -> list[Any]:
    found: list[Any] = (await stage.tell("/batches/lease", wanted))["batches"]
    return found


async def counted(stage: Clocked, name: str) -> float:
    text = (await stage.http.get("/metrics")).text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


# --------------------------------------------------------------------------------------------------------- a group


async def test_a_batch_has_the_sessions_samples_and_how_each_ended(stage: Clocked) -> None:
    await ended(stage, "a", turns=1)
    await stage.tell("/sessions/a/reward", {"reward": 0.5})
    await ended(stage, "b", status="failed")
    (batch,) = await leased(stage, batches=5)
    a, b = batch["sessions"]
    assert a["samples"] == (await stage.get("/sessions/a/samples"))["samples"]
    assert (a["state"], a["reward"], b["state"], b["samples"]) == ("completed", 0.5, "failed", [])
    assert (batch["group"], batch["group_size"], batch["deliveries"], batch["stale"]) == ("g", 2, 1, [])


async def test_a_session_with_a_call_under_way_is_waited_for(stage: Clocked) -> None:
    await ended(stage, "a")
    await stage.tell("/sessions", {"id": "b", "group": "g", "group_size": 2})
    stage.watched.gate.clear()
    call = asyncio.create_task(stage.say("b", [user("hello")]))
    await stage.watched.arrived.get()
    await stage.tell("/sessions/b/finish", {})
    assert await leased(stage) == []
    stage.watched.gate.set()
    assert (await call).complete
    await stage.settled()
    (batch,) = await leased(stage)
    assert [len(session["samples"]) for session in batch["sessions"]] == [0, 1]


async def test_sessions_without_a_size_or_a_part_in_training_are_no_group(stage: Clocked) -> None:
    for number in range(4):
        await ended(stage, f"sizeless{number}", group_size=None)
        await ended(stage, f"alone{number}", group=None)
        await ended(stage, f"eval{number}", role="eval")
        await ended(stage, f"size{number}", group_size=10 + number)
    assert await leased(stage) == []


async def test_an_expired_session_counts(stage: Clocked) -> None:
    await ended(stage, "a")
    await stage.tell("/sessions", {"id": "b", "group": "g", "group_size": 2, "ttl": 5})
    stage.time += 6
    stage._at_desk().registry.expire()
    (batch,) = await leased(stage)
    assert [session["state"] for session in batch["sessions"]] == ["completed", "expired"]


async def test_a_group_goes_on_without_a_session_that_is_deleted(stage: Clocked) -> None:
    for id in ("a", "b", "c"):
        await ended(stage, id)
    await stage.http.delete("/sessions/c")
    await stage.http.delete("/sessions/a")
    (batch,) = await leased(stage)
    assert [session["id"] for session in batch["sessions"]] == ["b"]
    await stage.http.delete("/sessions/b")
    stage.time += 1000
    assert await leased(stage) == []
    assert await counted(stage, 'stenograph_batches_total{event="dropped"}') == 1
    for id in ("a", "d"):
        await ended(stage, id)
    (batch,) = await leased(stage)
    assert [session["id"] for session in batch["sessions"]] == ["a", "d"]


async def test_a_lease_that_could_not_be_written_down_is_nobodys(stage: Clocked) -> None:
    await ended(stage, "a")
    await ended(stage, "b")
    with stage.shaky.failing():
        assert (await stage.http.post("/batches/lease", content=b'{"seconds": 5}')).status_code == 500
    stage.time += 5
    (batch,) = await leased(stage)
    with stage.shaky.failing():
        body = {"leases": [batch["lease"]]}
        assert (await stage.http.post("/batches/ack", json=body)).status_code == 500
    assert (await stage.tell("/batches/ack", body))["acknowledged"] == body["leases"]
    (kept,) = stage.shaky.batches()
    assert kept.state == "acknowledged"


async def test_everything_is_counted(stage: Clocked) -> None:
    for id in ("a", "b"):
        await ended(stage, id)
    assert await counted(stage, "stenograph_batches_waiting") == 1
    (first,) = await leased(stage, seconds=5)
    assert await counted(stage, "stenograph_batches_waiting") == 0
    stage.time += 5
    (second,) = await leased(stage)
    leases = [first["lease"], second["lease"], second["lease"], "nonsense"]
    answer = await stage.tell("/batches/ack", {"leases": leases})
    assert answer == {"acknowledged": [second["lease"]], "lost": [first["lease"], "nonsense"]}
    events = {"completed": 1, "leased": 1, "leased_again": 1, "acknowledged": 1, "lost": 2, "dropped": 0}
    for event, count in events.items():
        assert await counted(stage, f'stenograph_batches_total{{event="{event}"}}') == count, event


async def test_trainers_calls_need_the_admin_key(model: models.Model) -> None:
    async with Clocked(model, MemoryStore(), admin_key="k") as stage:
        for path in ("/batches/lease", "/batches/ack"):
            assert (await stage.http.post(path, json={"leases": []})).status_code == 401


# ------------------------------------------------------------------------------------------------------- staleness


async def say_weights(stage: Clocked, step: int) -> None:
    await stage.tell("/engines/weights", {"version": f"v{step}", "step": step})


async def test_what_is_too_old_is_dropped_and_counted_once(stage: Clocked) -> None:
    await say_weights(stage, 1)
    await ended(stage, "a", turns=1)
    await say_weights(stage, 2)
    await ended(stage, "b", turns=1)
    await say_weights(stage, 4)
    for _ in range(2):
        (batch,) = await leased(stage, max_staleness=2, seconds=5)
        assert (batch["stale"], [session["id"] for session in batch["sessions"]]) == (["a"], ["b"])
        stage.time += 5
    assert await counted(stage, "stenograph_stale_sessions_total") == 1
    assert await leased(stage, max_staleness=1) == []
    assert await counted(stage, "stenograph_stale_sessions_total") == 2
    assert await counted(stage, 'stenograph_batches_total{event="dropped"}') == 1


async def test_ages_survive_a_restart(model: models.Model) -> None:
    store = Lasting()
    async with Clocked(model, store) as stage:
        await say_weights(stage, 1)
        await ended(stage, "a", turns=1)
        await say_weights(stage, 3)
        await ended(stage, "b")
    async with Clocked(model, store) as stage:
        (batch,) = await leased(stage, max_staleness=1)
        assert (batch["stale"], [session["id"] for session in batch["sessions"]]) == (["a"], ["b"])
        await ended(stage, "c", turns=1)
        (sample,) = (await stage.get("/sessions/c/samples"))["samples"]
        assert sample["spans"][0]["weight_version"] is None


def part(version: str | None, step: int | None = None) -> Part:
    ids, logprobs = np.zeros(1, np.int32), np.zeros(1, np.float32)
    return Part(ids, logprobs, "e", "scripted", "raw", weight_version=version, step=step)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8, unique=True))
def test_the_age_of_a_token_is_in_steps_or_else_in_versions(steps: list[int]) -> None:
    stepped, unstepped = Weights(), Weights()
    assert stepped.age(part("never said")) == 0
    for step in steps:
        stepped.say(f"v{step}", step)
        unstepped.say(f"v{step}", None)
    for place, step in enumerate(steps):
        assert stepped.age(part(f"v{step}", step)) == stepped.age(part(f"v{step}")) == max(0, steps[-1] - step)
        assert unstepped.age(part(f"v{step}")) == len(steps) - 1 - place
    for weights in (stepped, unstepped):
        assert weights.age(part(None)) == weights.age(part("never said")) == len(steps)


# ---------------------------------------------------------------------------------------------------------- Python


async def next_of(groups: AsyncIterator[Group]) -> Group:
    return await asyncio.wait_for(anext(groups), 60)


async def test_groups_come_as_they_are_complete_and_end_with_the_gateway(model: models.Model) -> None:
    async with Clocked(model, MemoryStore()) as stage:
        groups = stage.groups()
        first = asyncio.create_task(next_of(groups))
        await ended(stage, "a", turns=1)
        assert not first.done()
        await ended(stage, "b", turns=1)
        group = await first
        assert (group.name, [sample.session_id for sample in group.samples]) == ("g", ["a", "b"])
        assert await group.ack()
        assert await group.ack()
        waiting = asyncio.create_task(next_of(groups))
        await asyncio.sleep(0)
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_a_group_that_was_not_acknowledged_comes_again_by_itself(stage: Clocked) -> None:
    """The second trainer waits for the first one's lease to run out; nobody tells it."""
    await ended(stage, "a")
    await ended(stage, "b")
    held = await next_of(stage.groups(seconds=0.05))
    other = asyncio.create_task(next_of(stage.groups()))
    await asyncio.sleep(0)
    assert not other.done()
    stage.time += 0.05
    again = await other
    assert (again.leased.id, again.leased.deliveries) == (held.leased.id, 2)
    assert (await held.ack(), await again.ack()) == (False, True)
