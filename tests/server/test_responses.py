"""Responses through the whole path: what the record holds, and which turn a call goes on from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import openai
import pytest
from openai.types.responses import Response

from stenograph.core import JSON
from stenograph.engine.script import FaultKind, Script
from stenograph.store.memory import MemoryStore
from tests.laws.checks import check_session
from tests.stage.models import LOOK, Model, model
from tests.stage.stage import Stage, user

FAMILY = "qwen3"
"""Its template reads and writes reasoning."""
THOUGHT = "<think>\nA city.\n</think>\n\n"
CALL = '<tool_call>\n{"name": "look", "arguments": {"city": "Paris"}}\n</tool_call>'
TOOL: Any = {"type": "function", **LOOK["function"]}


SCRIPT = Script(replies=("Hello there.", f"{THOUGHT}Looking.\n{CALL}\n{CALL}", "Sunny."), cut=0.6)


@pytest.fixture(scope="module")
def thinking() -> Model:
    return model(FAMILY)


@pytest.fixture
async def stage(thinking: Model) -> AsyncIterator[Stage]:
    async with Stage(thinking, MemoryStore(), SCRIPT, history="verbatim") as stage:
        yield stage


def client(stage: Stage, session: str = "s") -> openai.AsyncOpenAI:
    return stage.session(session).openai()


def turn(response: Response) -> str:
    return str((response.model_extra or {})["turn_id"])


async def laws(stage: Stage, session: str = "s", *, forks: Sequence[str] = (), branches: int = 1) -> list[str]:
    """Every law; and what was noted."""
    record = await check_session(stage, session)
    assert [call.fork.reason.value for call in record.calls if call.fork] == list(forks)
    told = await stage.get(f"/sessions/{session}")
    assert told["branches"] == branches
    return sorted({note.kind.value for call in record.calls for note in call.notes})


# ------------------------------------------------------------------------------------------------------- going on from


async def test_a_history_of_items_goes_on_token_by_token(stage: Stage) -> None:
    agent = client(stage)
    items: list[Any] = [user("hi")]
    for said in ("And?", None, None):
        response = await agent.responses.create(
            model="m", input=items, tools=[TOOL], instructions="Be brief.", include=["reasoning.encrypted_content"]
        )
        items += [item.to_dict() for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "sun"} for call in calls]
        items += [user(said)] if said else []
    assert response.output_text == "Sunny."
    assert await laws(stage) == []


async def test_a_stream_is_recorded_as_a_whole_answer_is(stage: Stage) -> None:
    agent = client(stage)
    for text in ("hi", "look"):
        async with agent.responses.stream(model="m", input=text, tools=[TOOL]) as events:
            async for _ in events:
                pass
            response = await events.get_final_response()
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    await laws(stage, forks=["new_conversation"], branches=2)
    assert stage.tree("s").turns[turn(response)].reply.content == "Looking."


async def test_a_response_goes_on_from_the_one_it_names(stage: Stage) -> None:
    agent = client(stage)
    first = await agent.responses.create(model="m", input="hi", instructions="Be brief.", tools=[TOOL])
    second = await agent.responses.create(
        model="m", input="look", previous_response_id=first.id, instructions="Be brief.", tools=[TOOL]
    )
    [reasoning, _, one, two] = second.output
    assert (reasoning.type, one.type, two.type) == ("reasoning", "function_call", "function_call")
    results: list[Any] = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "sun"}
        for call in (one, two)
        if call.type == "function_call"
    ]
    third = await agent.responses.create(
        model="m", input=results, previous_response_id=second.id, instructions="Be brief.", tools=[TOOL]
    )
    assert third.previous_response_id == second.id
    assert await laws(stage) == []


async def test_instructions_are_a_calls_own(stage: Stage) -> None:
    """Without them the past reads otherwise, and so the turn forks."""
    agent = client(stage)
    first = await agent.responses.create(model="m", input="hi", instructions="Be brief.")
    second = await agent.responses.create(model="m", input="Go on.", previous_response_id=first.id)
    third = await agent.responses.create(model="m", input="Go on.", previous_response_id=second.id)
    roles = [[message.role for message in stage.tree("s").messages(turn(each))] for each in (first, second, third)]
    assert roles[0] == ["system", "user", "assistant"]
    assert roles[1] == ["user", "assistant", "user", "assistant"]
    assert roles[2] == [*roles[1], "user", "assistant"]
    await laws(stage, forks=["history_shortened"], branches=2)


async def test_references_stand_for_what_was_said(stage: Stage) -> None:
    agent = client(stage)
    items: list[Any] = [user("hi")]
    for said in ("And?", None, None):
        response = await agent.responses.create(model="m", input=items, tools=[TOOL])
        items += [{"type": "item_reference", "id": item.id} for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "sun"} for call in calls]
        items += [user(said)] if said else []
    assert response.output_text == "Sunny."
    assert await laws(stage) == []


@pytest.mark.parametrize("by", ["previous", "items"])
async def test_of_two_that_said_the_same_the_named_one_goes_on(thinking: Model, by: str) -> None:
    """The same text, in other tokens."""
    async with Stage(thinking, MemoryStore(), Script(replies=("Unquestionably tokenization.",), cut=0.6)) as stage:
        agent = client(stage)
        both = await asyncio.gather(*(agent.responses.create(model="m", input="hi") for _ in range(2)))
        for each in both:
            goes_on: dict[str, Any] = {"input": "Go on.", "previous_response_id": each.id}
            if by == "items":
                goes_on = {"input": [user("hi"), *(item.to_dict() for item in each.output), user("Go on.")]}
            after = await agent.responses.create(model="m", **goes_on)
            assert stage.tree("s").turns[turn(after)].call.parent == turn(each)
        assert await laws(stage, forks=["resampled"], branches=2) == []


# ------------------------------------------------------------------------------------------------------- held to a form


async def test_a_custom_tool_that_has_to_be_called_is(thinking: Model) -> None:
    patch: Any = {"type": "custom", "name": "patch"}
    async with Stage(thinking, MemoryStore(), Script(guides=("tag",))) as stage:
        response = await client(stage).responses.create(model="m", input="hi", tools=[TOOL, patch], tool_choice=patch)
        [call] = response.output
        assert call.type == "custom_tool_call"
        assert call.name == "patch"
        await laws(stage)


async def test_a_text_that_has_a_form_has_it(thinking: Model) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form: Any = {"format": {"type": "json_schema", "name": "n", "schema": schema}}
    async with Stage(thinking, MemoryStore(), Script(guides=("json", "tag"))) as stage:
        response = await client(stage).responses.create(model="m", input="hi", text=form)
        assert msgspec.json.decode(response.output_text) == {"a": 0}
        assert stage.tree("s").turns[turn(response)].call.constrained
        await laws(stage)


async def test_a_form_that_the_engine_cannot_hold_is_refused_by_its_name(thinking: Model) -> None:
    body = {"model": "m", "input": "hi", "text": {"format": {"type": "json_object"}}}
    async with Stage(thinking, MemoryStore(), Script(guides=())) as stage:
        answer = await stage.ask("/s/s/v1/responses", msgspec.json.encode(body))
    assert answer.error is not None
    assert (answer.status, answer.error["param"]) == (400, "text.format")


# --------------------------------------------------------------------------------------------------------- going wrong


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"previous_response_id": "resp_x"}, "previous_response_id", "previous_response_not_found"),
        ({"input": [{"type": "item_reference", "id": "msg_x_0"}]}, "input", "item_not_found"),
        ({"input": [{"type": "item_reference", "id": "fc_x_0"}]}, "input", "item_not_found"),
    ],
)
async def test_what_is_not_in_the_record_cannot_be_named(
    stage: Stage, fields: dict[str, JSON], param: str, code: str
) -> None:
    answer = await stage.ask("/s/s/v1/responses", msgspec.json.encode({"model": "m", "input": "hi", **fields}))
    assert answer.status == 400
    assert answer.error is not None
    assert (answer.error["param"], answer.error["code"]) == (param, code)
    assert stage.tree("s").turns == {}


async def test_a_failure_in_mid_stream_fails_the_response(stage: Stage) -> None:
    agent = client(stage).with_options(max_retries=0)
    with stage.watched.faulty(FaultKind.FAIL_MIDWAY):
        events = await agent.responses.create(model="m", input="hi", stream=True)
        assert (await anext(aiter(events))).type == "response.created"
        with pytest.raises(openai.APIError, match="fails in the middle"):
            await _all(events)
    assert stage.tree("s").turns == {}


async def _all(events: AsyncIterator[object]) -> None:
    async for _ in events:
        pass


async def test_a_call_that_is_not_recorded_is_not_done(stage: Stage) -> None:
    """An agent would run the tool at once."""
    items: list[Any] = [user("hi"), {"role": "assistant", "content": "Hello there."}, user("look")]
    await client(stage).responses.create(model="m", input="hi")
    body = {"model": "m", "input": items, "tools": [TOOL], "stream": True}
    with stage.shaky.failing():
        response = await stage.http.post("/s/s/v1/responses", content=msgspec.json.encode(body))
    names = [line.removeprefix("event: ") for line in response.text.splitlines() if line.startswith("event: ")]
    assert names[-2:] == ["error", "response.failed"]
    added, done = (names.count(f"response.output_item.{what}") for what in ("added", "done"))
    assert (added, done) == (4, 3)
    assert "the disk is on fire" in response.text


async def test_a_failure_before_the_first_byte_is_a_status(stage: Stage) -> None:
    agent = client(stage).with_options(max_retries=0)
    with stage.watched.faulty(FaultKind.FAIL_AT_START), pytest.raises(openai.InternalServerError) as caught:
        await agent.responses.create(model="m", input="hi", stream=True)
    assert (caught.value.status_code, caught.value.code) == (503, "engine_unavailable")


async def test_a_reply_that_was_cut_is_incomplete(stage: Stage) -> None:
    agent = client(stage)
    response = await agent.responses.create(model="m", input="hi", max_output_tokens=2)
    assert (response.status, response.incomplete_details and response.incomplete_details.reason) == (
        "incomplete",
        "max_output_tokens",
    )
    items: list[Any] = [user("hi"), *(item.to_dict() for item in response.output), user("Go on.")]
    await agent.responses.create(model="m", input=items)
    assert await laws(stage) == []
