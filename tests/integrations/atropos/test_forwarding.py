"""A gateway's complete groups, from its record to the API's door."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stenograph import Gateway
from stenograph.errors import StoreError
from stenograph.export.formats.atropos import row
from stenograph.gateway import Session
from stenograph.integrations.atropos import scored
from stenograph.integrations.atropos.spool import Entry, Spool
from stenograph.integrations.atropos.trajectories import Trajectories
from tests.integrations.atropos.forwarding import SIZE, key, recorded
from tests.integrations.atropos.test_trajectories import drained, files
from tests.integrations.atropos.trajectory_api import FakeApi
from tests.live.processes import killed, process, said


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with Gateway(engine="scripted=") as one:
        yield one


def of(gateway: Gateway, api: FakeApi, spool: Path, **options: Any) -> Trajectories:
    wanted = {"group_size": SIZE, "max_token_length": 512, "gateway": gateway, **options}
    return Trajectories(api.url, spool=spool, **wanted)


async def rolled_out(
    gateway: Gateway, group: str, *, reward: float | None = 0.5, calls: int = 1, other_calls: int = 1
) -> list[Session]:
    sessions = [gateway.session(f"{group}.{n}", group=group, group_size=SIZE) for n in range(SIZE)]
    for session, most in zip(sessions, (calls, other_calls), strict=True):
        for number in range(most):
            asked: Any = [{"role": "user", "content": f"{session.id} {number}"}]
            await session.openai().chat.completions.create(model="m", messages=asked, max_tokens=4)
        session.reward(reward)
        await session.finish()
    return sessions


async def forwarded(gateway: Gateway, api: FakeApi, spool: Path, group: str) -> None:
    async with of(gateway, api, spool) as sending:
        await rolled_out(gateway, group)
        await drained(sending)


async def test_each_complete_group_arrives_once_equal_to_its_samples(
    gateway: Gateway, api: FakeApi, tmp_path: Path
) -> None:
    async with of(gateway, api, tmp_path) as sending:
        groups = [await rolled_out(gateway, name) for name in "abc"]
        await drained(sending)
        assert gateway.open_groups == 0
    told = [row([sample for session in group for sample in session.samples()]) for group in groups]
    assert api.groups == [{**group, "env_id": 0} for group in told]


async def test_a_group_that_cannot_be_one_there_is_kept_with_the_reason(
    gateway: Gateway, api: FakeApi, tmp_path: Path
) -> None:
    async with of(gateway, api, tmp_path) as sending:
        await rolled_out(gateway, "unrewarded", reward=None)
        await rolled_out(gateway, "branched", other_calls=2)
        await rolled_out(gateway, "silent", other_calls=0)
        await rolled_out(gateway, "fine")
        await drained(sending)
    assert [key(group) for group in api.groups] == ["fine"]
    kept = {one["data"]["group"]: one for one in files(tmp_path, "refused")}
    assert "unrewarded.0 has no reward" in kept["unrewarded"]["reason"]
    assert "branched.1 has 2 branches" in kept["branched"]["reason"]
    assert "1 sequences of 2" in kept["silent"]["reason"]
    assert len(kept["branched"]["data"]["samples"]) == 3


async def test_of_several_branches_the_main_one_goes_where_that_is_said(
    gateway: Gateway, api: FakeApi, tmp_path: Path
) -> None:
    async with of(gateway, api, tmp_path, branches="main") as sending:
        sessions = await rolled_out(gateway, "branched", other_calls=3)
        await drained(sending)
    (group,) = api.groups
    main = [sample for session in sessions for sample in session.samples() if sample.main]
    assert group["tokens"] == [sample.tokens.tolist() for sample in main]


async def test_what_was_on_disk_before_the_gateway_knew_is_sent_once(
    gateway: Gateway, api: FakeApi, tmp_path: Path
) -> None:
    """Killed between the two: the group is there twice, under one lease."""
    await rolled_out(gateway, "a")
    group = await anext(gateway.groups())
    spool = Spool(tmp_path)
    spool.put(Entry(data=scored.body(row(group.samples)), lease=group.leased.lease))
    spool.close()
    assert gateway.open_groups == 1
    async with of(gateway, api, tmp_path) as sending:
        await drained(sending)
        assert gateway.open_groups == 0
    assert [key(group) for group in api.groups] == ["a"]


async def test_a_disk_that_fails_leaves_the_group_with_the_gateway(
    gateway: Gateway, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Spool, entry: Entry) -> int:
        raise StoreError("No space left on device")

    monkeypatch.setattr(Spool, "put", full)
    with pytest.raises(StoreError, match="No space left"):
        await forwarded(gateway, api, tmp_path, "a")
    assert gateway.open_groups == 1


async def test_a_gateway_that_cannot_be_told_leaves_the_group_on_disk(
    gateway: Gateway, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(leases: list[str]) -> tuple[bool, ...]:
        raise StoreError("the store is closed")

    with monkeypatch.context() as broken:
        broken.setattr(gateway, "acknowledge", failing)
        with pytest.raises(StoreError, match="the store is closed"):
            await forwarded(gateway, api, tmp_path, "a")
    assert (len(files(tmp_path, "leased")), api.groups) == (1, [])
    async with of(gateway, api, tmp_path) as sending:
        await drained(sending)
        assert gateway.open_groups == 0
    assert [key(group) for group in api.groups] == ["a"]


async def test_a_lease_that_nobody_knows_any_more_is_no_reason_to_lose_the_group(
    gateway: Gateway, api: FakeApi, tmp_path: Path
) -> None:
    spool = Spool(tmp_path)
    spool.put(Entry(data=msgspec.Raw(b'{"tokens":[[1]],"masks":[[1]],"scores":[0.0]}'), lease="of another gateway"))
    spool.close()
    async with of(gateway, api, tmp_path) as sending:
        await drained(sending)
    assert [group["tokens"] for group in api.groups] == [[[1]]]


async def test_killed_at_random_moments_it_loses_none_and_invents_none(api: FakeApi, tmp_path: Path) -> None:
    worker = ("tests.integrations.atropos.forwarding", api.url, str(tmp_path))
    chance = random.Random(7)
    for life in range(4):
        async with process(*worker, f"life-{life}") as doomed:
            for _ in range(chance.randint(1, 6)):
                await said(doomed)
            await asyncio.sleep(chance.random() / 20)  # anywhere in between
            await killed(doomed)
    async with process(*worker, "last", "2") as last:
        assert await asyncio.wait_for(last.wait(), 60) == 0
    wanted = recorded(tmp_path / "store")
    assert len(wanted) >= 6
    assert {key(group) for group in api.groups} == set(wanted)
    assert all({**wanted[key(group)], "env_id": group["env_id"]} == group for group in api.groups)
    twice = len(api.groups) - len(wanted)
    assert twice <= 4, "at most the one that was under way, of each that was killed"
