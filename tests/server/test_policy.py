"""What a rollout worker decides for a session, and what an agent that knows nothing of it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from stenograph.core import JSON
from stenograph.engine.script import FaultKind, Script
from stenograph.store.memory import MemoryStore
from tests.laws.checks import check_session
from tests.stage import models
from tests.stage.stage import Stage, user

HELLO = [user("hello")]
LONG = Script(longest=30)


@pytest.fixture(scope="module")
def model() -> models.Model:
    return models.model(models.ALWAYS)


@pytest.fixture
async def stage(model: models.Model) -> AsyncIterator[Stage]:
    async with Stage(model, MemoryStore(), LONG) as one:
        yield one


async def only_sample(stage: Stage) -> JSON:
    (sample,) = (await stage.get("/sessions/s/samples"))["samples"]
    return sample


# ----------------------------------------------------------------------------------------------------------- sampling


async def test_defaults_fill_what_the_agent_leaves_out(stage: Stage) -> None:
    await stage.tell("/sessions", {"id": "s", "sampling": {"defaults": {"temperature": 0.5, "top_p": 0.9}}})
    await stage.say("s", HELLO, top_p=0.8)
    (sent,) = [call.sampling for call in stage.watched.calls]
    assert (sent["temperature"], sent["top_p"]) == (0.5, 0.8)
    assert (await only_sample(stage))["notes"] == []


async def test_force_wins_over_an_agent_that_wants_temperature_zero(stage: Stage) -> None:
    await stage.tell("/sessions", {"id": "s", "sampling": {"force": {"temperature": 1, "max_tokens": 3}}})
    answer = await stage.say("s", HELLO, temperature=0)
    assert (await only_sample(stage))["spans"][0]["sampling"]["temperature"] == 1.0
    assert (await only_sample(stage))["notes"] == [{"kind": "sampling_forced", "detail": "temperature"}]
    assert len(answer.choices[0].token_ids) <= 3


async def test_lists_and_maps_are_forced_too(stage: Stage) -> None:
    force = {"stop": ["never said"], "stop_token_ids": [5], "logit_bias": {"7": -1}}
    await stage.tell("/sessions", {"id": "s", "sampling": {"force": force, "defaults": {"stop": "nor this"}}})
    await stage.say("s", HELLO)
    (sent,) = [call.sampling for call in stage.watched.calls]
    assert (sent["stop"][0], sent["stop_token_ids"][0], sent["logit_bias"]) == ("never said", 5, {7: -1.0})


# ------------------------------------------------------------------------------------------------------- role and name


async def test_a_session_s_role_is_on_its_samples(stage: Stage) -> None:
    await stage.tell("/sessions", {"id": "s", "role": "judge"})
    await stage.say("s", HELLO)
    assert (await only_sample(stage))["role"] == (await stage.get("/sessions/s"))["role"] == "judge"


async def test_any_model_name_is_taken_under_a_session_and_recorded(stage: Stage) -> None:
    assert (await stage.say("s", HELLO, model="gpt-of-the-day")).complete
    assert (await only_sample(stage))["spans"][0]["model"] == "gpt-of-the-day"
    answer = await stage.say(None, HELLO, model="gpt-of-the-day")
    assert (answer.status, (answer.error or {})["code"]) == (404, "model_not_found")


# -------------------------------------------------------------------------------------------------------------- budget


async def test_a_budget_of_turns_ends_a_rollout_with_a_clear_error(stage: Stage) -> None:
    await stage.tell("/sessions", {"id": "s", "budget": {"turns": 1}})
    assert (await stage.say("s", HELLO)).complete
    answer = await stage.say("s", HELLO)
    assert answer.error is not None
    assert (answer.status, answer.error["code"]) == (400, "budget_exhausted")
    assert "budget of 1 turns is used up" in answer.error["message"]
    assert (await stage.get("/sessions/s"))["attempts"]["refused"] == 1
    await check_session(stage, "s")


async def test_calls_that_are_under_way_count_as_turns(stage: Stage) -> None:
    await stage.tell("/sessions", {"id": "s", "budget": {"turns": 2}})
    answers = await asyncio.gather(*(stage.say("s", [user(f"hello {place}")]) for place in range(5)))
    assert sorted(answer.status for answer in answers) == [200, 200, 400, 400, 400]
    assert len(stage.tree("s").turns) == 2


async def test_a_call_that_failed_is_no_turn_of_the_budget(stage: Stage) -> None:
    await stage.tell("/sessions", {"id": "s", "budget": {"turns": 1}})
    with stage.watched.faulty(FaultKind.CRASH):
        assert (await stage.say("s", HELLO)).status == 502
    assert (await stage.say("s", HELLO)).complete


async def test_the_choices_of_a_call_share_a_budget_of_tokens(stage: Stage) -> None:
    await stage.tell("/sessions", {"id": "s", "budget": {"tokens": 9}})
    answer = await stage.say("s", HELLO, n=4)
    assert all(len(choice.token_ids) <= 2 for choice in answer.choices)
    refused = await stage.say("s", HELLO, n=64)
    assert (refused.status, (refused.error or {})["code"]) == (400, "budget_exhausted")


async def test_a_budget_of_tokens_cuts_the_reply_that_reaches_it(stage: Stage) -> None:
    await stage.tell("/sessions", {"id": "s", "budget": {"tokens": 2}})
    answer = await stage.say("s", HELLO, min_tokens=2)
    assert (len(answer.choices[0].token_ids), answer.choices[0].finish_reason) == (2, "length")
    assert (await only_sample(stage))["truncated"] == "budget"
    refused = await stage.say("s", HELLO)
    assert (refused.status, (refused.error or {})["code"]) == (400, "budget_exhausted")


# ------------------------------------------------------------------------------------------------------------- repeats


async def test_who_comes_back_within_the_grace_period_joins_the_call_that_was_left(model: models.Model) -> None:
    """No header says that it is a retry: its first caller's connection is gone."""
    async with Stage(model, MemoryStore(), LONG, grace=60.0) as stage:
        stage.watched.gate.clear()
        first = asyncio.create_task(stage.say("s", HELLO))
        await stage.watched.arrived.get()
        first.cancel()
        await asyncio.wait({first})
        again = asyncio.create_task(stage.say("s", HELLO))
        stage.watched.gate.set()
        answer = await again
        assert answer.complete
        assert len(stage.watched.calls) == len(stage.tree("s").turns) == 1
        assert (await stage.say("s", HELLO)).turn_id != answer.turn_id
        assert sum((await stage.get("/sessions/s"))["attempts"].values()) == 0


@pytest.mark.parametrize("headers", [{"idempotency-key": "k"}, {"x-stainless-retry-count": "1"}])
async def test_a_retry_joins_a_call_whose_caller_still_waits(stage: Stage, headers: dict[str, str]) -> None:
    stage.watched.gate.clear()
    first = asyncio.create_task(stage.say("s", HELLO, headers if "idempotency-key" in headers else {}))
    await stage.watched.arrived.get()
    again = asyncio.create_task(stage.say("s", HELLO, headers))
    stage.watched.gate.set()
    assert (await first).turn_id == (await again).turn_id
    assert len(stage.watched.calls) == 1


@pytest.mark.parametrize("body", [{"model": "m", "max_tokens": 9, "messages": HELLO}, {"model": "m", "input": "hello"}])
@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_a_key_of_a_call_with_several_choices_is_not_one_of_a_call_with_one(
    stage: Stage, body: JSON, stream: bool
) -> None:
    """Protocols that know of one choice only could not even say what was sampled."""
    keyed = {"idempotency-key": "k"}
    await stage.say("s", HELLO, keyed, n=2)
    route = "messages" if "messages" in body else "responses"
    again = await stage.http.post(f"/s/s/v1/{route}", json=body | {"stream": stream}, headers=keyed)
    assert (again.status_code, "call with n = 2" in again.text) == (400, True)
    assert len(stage.watched.calls) == 1


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f"}},
    ],
)
async def test_images_audio_and_files_are_not_supported_yet_and_it_says_so(stage: Stage, part: JSON) -> None:
    answer = await stage.say("s", [{"role": "user", "content": [{"type": "text", "text": "see:"}, part]}])
    assert answer.error is not None
    assert (answer.status, answer.error["param"]) == (400, "messages[0].content[1].type")
    assert "not supported yet; only text is (no images, audio or files)" in answer.error["message"]
    assert not stage.watched.calls
