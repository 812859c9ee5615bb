"""What is handed in arrives, in order, whatever the API does in between. The fake is on the wire, in this process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from stenograph.errors import CallerError, ConfigError
from stenograph.integrations.atropos import sender
from stenograph.integrations.atropos.spool import Spool
from stenograph.integrations.atropos.trajectories import Trajectories
from tests.integrations.atropos.groups import group, number_of
from tests.integrations.atropos.trajectory_api import FakeApi


def to(api: FakeApi, spool: Path, **options: Any) -> Trajectories:
    return Trajectories(api.url, spool=spool, **{"group_size": 2, "max_token_length": 64, **options})


async def sent(sending: Trajectories, *numbers: int) -> None:
    for number in numbers:
        await sending.send(group(number))


async def drained(sending: Trajectories) -> None:
    await asyncio.wait_for(sending.drained(), 20)


def arrived(api: FakeApi) -> list[int]:
    return [number_of(group) for group in api.groups]


def files(spool: Path, folder: str) -> list[Any]:
    return [json.loads(path.read_bytes()) for path in sorted((spool / folder).glob("*.json"))]


# -------------------------------------------------------------------------------------------------- all goes well


async def test_groups_arrive_once_in_order_as_they_are(api: FakeApi, tmp_path: Path) -> None:
    async with to(api, tmp_path, name="maths", weight=0.5, min_batch_allocation=0.25) as sending:
        await sent(sending, 1, 2, 3)
        await drained(sending)
    assert api.groups == [{**group(number), "env_id": 0} for number in (1, 2, 3)]
    (env,) = api.envs
    assert env.pop("desired_name").startswith("maths-")
    assert env == {"group_size": 2, "max_token_length": 64, "weight": 0.5, "min_batch_allocation": 0.25}
    assert api.left == [0]


async def test_several_that_are_one_step_go_together(api: FakeApi, tmp_path: Path) -> None:
    async with to(api, tmp_path) as sending:
        await sending.send([group(1), group(2)])
        await drained(sending)
    assert [path for path, _, _ in api.heard] == ["/scored_data_list"]
    assert arrived(api) == [1, 2]


@pytest.mark.parametrize(("length", "compressed"), [(4, False), (400, True)])
async def test_what_is_over_a_kibibyte_is_compressed(
    api: FakeApi, tmp_path: Path, length: int, compressed: bool
) -> None:
    async with to(api, tmp_path, max_token_length=1024) as sending:
        await sending.send(group(1, length=length))
        await drained(sending)
    ((_, headers, body),) = api.heard
    assert (headers.get("Content-Encoding") == "gzip") is compressed is (len(body) != int(headers["Content-Length"]))


async def test_nothing_is_sent_before_the_trainer_has_started(api: FakeApi, tmp_path: Path) -> None:
    """A group that comes first breaks atroposlib's API for good: no trainer can register any more."""
    api.started = False
    async with to(api, tmp_path) as sending:
        await sent(sending, 1)
        await api.until(lambda: api.asked_to_register >= 3)
        assert api.heard == []
        api.started = True
        await drained(sending)
    assert arrived(api) == [1]


# ------------------------------------------------------------------------------------------------ all goes wrong


async def test_an_api_that_is_away_is_waited_for(api: FakeApi, tmp_path: Path) -> None:
    await api.die()
    async with to(api, tmp_path) as sending:
        await sent(sending, 1, 2)
        await api.start()
        await drained(sending)
    assert arrived(api) == [1, 2]


@pytest.mark.parametrize(
    "sick",
    [
        None,
        web.Response(status=500),
        web.Response(status=502, text="<html>bad gateway"),
        web.Response(status=503),
        web.Response(status=429),
        web.Response(text="<html>sign in"),
        web.Response(text="[]", content_type="application/json"),
        web.Response(text='{"status": "lost"}', content_type="application/json"),
    ],
    ids=["broken off", "500", "502", "503", "429", "a page", "a list", "another status"],
)
async def test_what_may_pass_is_tried_again(api: FakeApi, tmp_path: Path, sick: web.Response | None) -> None:
    api.sick.append(sick)
    async with to(api, tmp_path) as sending:
        await sent(sending, 1, 2)
        await drained(sending)
    assert arrived(api) == [1, 2]
    assert files(tmp_path, "refused") == []


async def test_what_the_api_refuses_is_kept_with_the_reason_and_holds_nobody_up(api: FakeApi, tmp_path: Path) -> None:
    api.sick.append(web.Response(status=422, text="masks: wrong"))
    async with to(api, tmp_path) as sending:
        await sent(sending, 1, 2)
        await drained(sending)
    assert arrived(api) == [2]
    (kept,) = files(tmp_path, "refused")
    assert (kept["data"], kept["status"], kept["reason"]) == (group(1), 422, "masks: wrong")


async def test_a_group_on_which_the_api_always_fails_is_kept_too(api: FakeApi, tmp_path: Path) -> None:
    api.sick += [web.Response(status=500, text="oh") for _ in range(sender.TRIES)]
    async with to(api, tmp_path) as sending:
        await sent(sending, 1, 2)
        await drained(sending)
    assert arrived(api) == [2]
    assert [kept["status"] for kept in files(tmp_path, "refused")] == [500]


async def test_a_refused_one_that_is_moved_back_is_sent_the_next_time(api: FakeApi, tmp_path: Path) -> None:
    api.sick.append(web.Response(status=422))
    async with to(api, tmp_path) as sending:
        await sent(sending, 1)
        await drained(sending)
    (kept,) = (tmp_path / "refused").iterdir()
    kept.rename(tmp_path / "waiting" / kept.name)
    async with to(api, tmp_path) as sending:
        await drained(sending)
    assert arrived(api) == [1]


async def test_what_died_with_the_api_is_sent_again_in_order(api: FakeApi, tmp_path: Path) -> None:
    async with to(api, tmp_path) as sending:
        await sent(sending, 1, 2)
        await drained(sending)
        await api.die()
        await sent(sending, 3)
        await api.start()
        await drained(sending)
        assert arrived(api) == [1, 2, 3]
        assert [env["group_size"] for env in api.envs] == [2]


async def test_an_api_that_restarts_while_nothing_is_asked_of_it_is_a_new_one(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a client that keeps connections it looks as if it had been there all the time."""
    monkeypatch.setattr(sender, "LOOK_SECONDS", 3600.0)
    async with to(api, tmp_path) as sending:
        await sent(sending, 1, 2)
        await api.until(lambda: api.looked_at == 2)
        await api.die()
        await api.start()
        await sent(sending, 3)
        await drained(sending)
    assert arrived(api) == [1, 2, 3]


async def test_what_the_trainer_has_is_not_sent_again(api: FakeApi, tmp_path: Path) -> None:
    async with to(api, tmp_path) as sending:
        await sent(sending, 1, 2)
        await drained(sending)
        await fetched(api, tmp_path)
        await api.die()
        await api.start()
        await sent(sending, 3)
        await drained(sending)
    assert arrived(api) == [3]


async def fetched(api: FakeApi, spool: Path) -> None:
    """The trainer takes what is queued into a batch, and begins the next."""
    api.queued = 0
    await looks(api)
    api.step += 1
    await api.until(lambda: not list((spool / "sent").iterdir()))


async def looks(api: FakeApi) -> None:
    """The sender has seen how things are: of two looks from now on, the second was begun after now."""
    before = api.looks
    await api.until(lambda: api.looks >= before + 2)


async def test_a_connection_that_breaks_is_not_an_api_that_died(api: FakeApi, tmp_path: Path) -> None:
    async with to(api, tmp_path) as sending:
        await sent(sending, 1)
        await drained(sending)
        api.sick.append(None)
        await sent(sending, 2)
        await drained(sending)
    assert arrived(api) == [1, 2]
    assert [number["env_id"] for number in api.groups] == [0, 0]
    assert api.left == [1, 0]


async def test_nor_is_our_own_restart(api: FakeApi, tmp_path: Path) -> None:
    for number in (1, 2):
        async with to(api, tmp_path) as sending:
            await sent(sending, number)
            await drained(sending)
    assert arrived(api) == [1, 2]
    assert api.left == [0, 1]


async def test_an_api_that_was_reset_is_a_new_one(api: FakeApi, tmp_path: Path) -> None:
    """Atropos' `/reset_data`, or a restart behind a proxy that keeps our connection."""
    async with to(api, tmp_path) as sending:
        api.step = 3
        await sent(sending, 1)
        await drained(sending)
        await looks(api)
        api.groups, api.envs, api.step, api.queued = [], [], 0, 0
        await api.until(lambda: bool(api.groups))
    assert arrived(api) == [1]


# ------------------------------------------------------------------------------------------------- what is wrong


async def test_bad_input_is_refused_at_once_and_not_kept(api: FakeApi, tmp_path: Path) -> None:
    async with to(api, tmp_path) as sending:
        with pytest.raises(CallerError, match=r"masks\[1\]: it has 3 positions, and tokens has 4") as refused:
            await sending.send({**group(1), "masks": [[1] * 4, [1] * 3]})
        assert refused.value.param == "masks[1]"
        await drained(sending)
    assert api.heard == []


async def test_what_no_trainer_would_get_is_not_sent(api: FakeApi, tmp_path: Path) -> None:
    api.longest = 5
    async with to(api, tmp_path) as sending:
        await sending.send(group(1, size=3))
        await sending.send(group(2, length=5))
        await sending.send(group(3, length=5), any_length=True)
        await drained(sending)
    assert arrived(api) == [3]
    assert ["group_size = 2" in kept["reason"] for kept in files(tmp_path, "refused")] == [True, False]
    assert "max_token_len is 5" in files(tmp_path, "refused")[1]["reason"]


async def test_an_address_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"looks like http://HOST:PORT, not localhost:8000"):
        await Trajectories("localhost:8000", spool=tmp_path, group_size=2, max_token_length=8).__aenter__()
    Spool(tmp_path).close()


async def test_two_senders_do_not_share_a_folder(api: FakeApi, tmp_path: Path) -> None:
    async with to(api, tmp_path):
        with pytest.raises(ConfigError, match="in use by another stenograph"):
            await to(api, tmp_path).__aenter__()


async def test_a_folder_that_fails_ends_the_sending_and_says_so(api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "waiting").mkdir()
    (tmp_path / "waiting" / "000000000001.json").write_text("{")
    with pytest.raises(Exception, match="is no group of this spool"):
        async with to(api, tmp_path) as sending:
            await drained(sending)


# ------------------------------------------------------------------------------------------- handle_send_to_api


async def test_an_environments_own_call_leaves_out_what_atropos_leaves_out(api: FakeApi, tmp_path: Path) -> None:
    same = {**group(2), "scores": [1.0, 1.0]}
    async with to(api, tmp_path) as sending:
        await sending.handle_send_to_api(group(1), "item")
        await sending.handle_send_to_api([None, same, group(3, size=1), group(4)])
        await sending.handle_send_to_api(None)
        await sending.handle_send_to_api(group(5), do_send_to_api=False)
        await drained(sending)
    assert arrived(api) == [1, 4]
    assert [path for path, _, _ in api.heard] == ["/scored_data", "/scored_data_list"]


async def test_and_its_settings_hold(api: FakeApi, tmp_path: Path) -> None:
    api.longest = 4
    async with to(api, tmp_path, ensure_scores_are_not_same=False) as sending:
        await sending.handle_send_to_api({**group(1), "scores": [1.0, 1.0]}, abort_on_any_max_length_exceeded=False)
        await sending.handle_send_to_api({**group(2, size=1), "group_overrides": {"group_size": 1}}, None)
        await drained(sending)
    assert arrived(api) == [1]
    assert len(files(tmp_path, "refused")) == 1
