"""Anthropic's own SDK before an engine whose tokens are not canonical: whatever it keeps, the record goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import pytest
from anthropic import beta_async_tool
from anthropic.types import Message

from stenograph.clients import anthropic_client
from stenograph.core import JSON, NoteKind
from stenograph.engine.script import FaultKind, Script
from stenograph.gateway import HERE
from stenograph.server import model_call
from stenograph.store.memory import MemoryStore
from tests.laws.checks import check_session
from tests.stage import models
from tests.stage.models import Model
from tests.stage.stage import Stage

LOOK: JSON = {
    "name": "look",
    "description": "looks out of a window",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
HELLO: list[JSON] = [{"role": "user", "content": "Paris?"}]


@pytest.fixture(scope="module")
def small() -> Model:
    return models.model(models.ALWAYS)


@pytest.fixture(scope="module")
def thinker() -> Model:
    return models.model("qwen3")


@asynccontextmanager
async def staged(model: Model, *replies: str) -> AsyncIterator[tuple[Stage, anthropic.AsyncAnthropic]]:
    async with Stage(model, MemoryStore(), Script(model=model.name, seed=5, cut=1.0, replies=replies)) as stage:
        async with anthropic_client(stage.witness, f"{HERE}/s/run", "EMPTY", {"max_retries": 0}) as client:
            yield stage, client
        assert stage.witness.breaches == []


def thought(model: Model, thinking: str, content: str) -> str:
    """Of a reply that calls twice, with white space wherever a model may leave some."""
    call = model.call.rpartition("</think>")[2].strip()
    other = call.replace('{"city": "Paris"}', '{"far": true, "city": "Ro\nme"}')
    return f"<think>\n{thinking} \n</think>\n\n {content}\n\n{call}\n{other}\n"


# ---------------------------------------------------------------------------------------------------- what agents keep


def whole(block: JSON) -> JSON:
    return block


def without_thinking(block: JSON) -> JSON | None:
    return None if block["type"] == "thinking" else block


def trimmed(block: JSON) -> JSON:
    return {**block, "text": block["text"].strip()} if block["type"] == "text" else block


def reordered(block: JSON) -> JSON:
    return {**block, "input": dict(reversed(block["input"].items()))} if block["type"] == "tool_use" else block


def blanked(block: JSON) -> JSON:
    return {**block, "thinking": ""} if block["type"] == "thinking" else block


KEPT: tuple[Callable[[JSON], JSON | None], ...] = (whole, without_thinking, trimmed, reordered, blanked)
THINKING: tuple[JSON, ...] = (
    {"type": "enabled", "budget_tokens": 1024},
    {"type": "adaptive", "display": "omitted"},
    None,
)


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("thinking", THINKING)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_tool_loop_is_one_sample(
    thinker: Model, kept: Callable[[JSON], JSON | None], thinking: JSON, stream: bool
) -> None:
    replies = (thought(thinker, "Hm", "I look."), thought(thinker, "More", ""), "<think>\n\n</think>\n\nDone. \n")
    async with staged(thinker, *replies) as (stage, client):
        messages = list(HELLO)
        for number in range(3):
            answer = await said(client, messages, thinking, stream=stream)
            content = [kept(block.to_dict()) for block in answer.content]
            assert answer.stop_reason == ("tool_use" if number < 2 else "end_turn")
            assert [block.input for block in answer.content if block.type == "tool_use"] == (
                [{"city": "Paris"}, {"far": True, "city": "Ro\nme"}] if number < 2 else []
            )
            messages.append({"role": "assistant", "content": [block for block in content if block]})
            messages.append({"role": "user", "content": results(answer)})
        record = await check_session(stage, "run")
        assert len(record.turns) == 3
        assert [call.fork for call in record.calls] == [None] * 3
        if kept is not without_thinking and kept is not blanked:
            noted = {note.kind for call in record.calls for note in call.notes}
            assert NoteKind.REASONING_RESTORED not in noted


async def said(client: anthropic.AsyncAnthropic, messages: list[JSON], thinking: JSON, *, stream: bool) -> Message:
    asked: dict[str, Any] = {"model": "any", "max_tokens": 200, "messages": messages, "tools": [LOOK]}
    asked |= {"thinking": thinking} if thinking else {}
    if not stream:
        answer: Message = await client.messages.create(**asked)
        return answer
    async with client.messages.stream(**asked) as events:
        return await events.get_final_message()


def results(answer: Message) -> list[JSON]:
    content = ([{"type": "text", "text": "sunny"}], "dark", None)
    calls = [block for block in answer.content if block.type == "tool_use"]
    return [
        {"type": "tool_result", "tool_use_id": call.id, "content": content[place], "is_error": bool(place)}
        for place, call in enumerate(calls)
    ]


async def test_the_sdks_own_tool_loop(thinker: Model) -> None:
    """It asks for a thread first, in which it would send the new messages only, and does without."""

    @beta_async_tool
    async def look(city: str) -> str:
        """Looks out of a window."""
        if city == "Paris":
            return "sunny"
        raise RuntimeError(f"no window in {city}")

    call = thinker.call.rpartition("</think>")[2].strip()
    replies = (
        f"<think>\nHm\n</think>\n\nI look.\n\n{call}",
        call.replace("Paris", "Rome"),
        "<think>\nOh\n</think>\n\nSun.\n",
    )
    async with staged(thinker, *replies) as (stage, client):
        runner = client.beta.messages.tool_runner(model="any", max_tokens=200, messages=HELLO, tools=[look])
        answer = await runner.until_done()
        assert [block.text for block in answer.content if block.type == "text"] == ["Sun.\n"]
        record = await check_session(stage, "run")
        assert [call.fork for call in record.calls] == [None] * 3
        told = [message.content for call in record.calls for message in call.messages if message.role == "tool"]
        assert told[0] == "sunny"
        assert "no window in Rome" in str(told[1])


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "look"}])
async def test_a_tool_that_is_demanded_is_called(thinker: Model, choice: JSON) -> None:
    async with staged(thinker) as (stage, client):
        asked: dict[str, Any] = {"model": "any", "max_tokens": 200, "messages": HELLO, "tools": [LOOK]}
        asked["tool_choice"] = {**choice, "disable_parallel_tool_use": True}
        answer: Message = await client.messages.create(**asked)
        (called,) = [block for block in answer.content if block.type == "tool_use"]
        assert (called.name, answer.stop_reason) == ("look", "tool_use")
        (call,) = (await check_session(stage, "run")).calls
        assert call.constrained


# ---------------------------------------------------------------------------------------------------- beside an answer


async def test_count_tokens_foretells_the_prompt_and_leaves_no_trace(thinker: Model) -> None:
    async with staged(thinker, thought(thinker, "Hm", "I look.")) as (stage, client):
        asked: dict[str, Any] = {"model": "any", "messages": HELLO, "tools": [LOOK], "system": "Be brief."}
        foretold = await client.messages.count_tokens(**asked)
        assert await stage.get("/sessions") == {"sessions": []}
        answer = await client.messages.create(**asked, max_tokens=200)
        assert foretold.input_tokens == answer.usage.input_tokens
        echo = {"role": "assistant", "content": answer.content}
        asked["messages"] = [*HELLO, echo, {"role": "user", "content": results(answer)}]
        foretold = await client.messages.count_tokens(**asked)
        assert foretold.input_tokens == (await client.messages.create(**asked, max_tokens=9)).usage.input_tokens


async def test_it_says_no_in_anthropics_own_form(small: Model) -> None:
    picture: JSON = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    async with staged(small) as (stage, client):
        for path in ("messages", "messages/count_tokens"):
            body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": [picture]}]}
            answer = await stage.http.post(f"/s/run/v1/{path}", json=body)
            assert answer.status_code == 400
            assert answer.json() == {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "messages[0].content[0].type: blocks of type image are not supported yet: no images, "
                    "documents or audio, and nothing that only Anthropic's servers run",
                    "code": None,
                    "param": "messages[0].content[0].type",
                    "details": None,
                },
            }
        nowhere = anthropic_client(stage.app, HERE, "EMPTY", {"max_retries": 0})
        with pytest.raises(anthropic.NotFoundError, match="no model other"):
            await nowhere.messages.create(model="other", max_tokens=5, messages=[{"role": "user", "content": "Hi"}])
        long = "word " * 9000
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
            await client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": long}])
        with pytest.raises(anthropic.BadRequestError, match="role system is not supported"):
            await client.messages.create(
                model="m", max_tokens=5, messages=[{"role": "user", "content": models.REFUSED}]
            )
        assert not stage.tree("run").turns


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (FaultKind.FAIL_AT_START, anthropic.ServiceUnavailableError),
        (FaultKind.MISSING_LOGPROB, anthropic.InternalServerError),
    ],
)
async def test_a_failure_has_its_status_and_name(small: Model, kind: FaultKind, error: type[Exception]) -> None:
    async with staged(small) as (stage, client):
        with stage.watched.faulty(kind), pytest.raises(error, match=r"(overloaded|api)_error"):
            await client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "Hi"}])


async def test_an_error_behind_the_first_byte_is_raised_and_nothing_is_recorded(small: Model) -> None:
    async with staged(small, "one two three four five six") as (stage, client):
        with (
            stage.watched.faulty(FaultKind.FAIL_MIDWAY),
            pytest.raises(anthropic.APIStatusError, match="fails in the mid"),
        ):
            await said(client, HELLO, None, stream=True)
        assert not stage.tree("run").turns


async def test_silence_is_filled_with_pings(small: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comment before the message has started; its own event behind."""
    monkeypatch.setattr(model_call, "KEEP_ALIVE_SECONDS", 0.001)
    async with staged(small) as (stage, _):
        stage.watched.gate.clear()
        stage.shaky.open.clear()
        heard = b""
        body = {"model": "m", "max_tokens": 5, "stream": True, "messages": HELLO}
        async with asyncio.timeout(10), stage.http.stream("POST", "/s/run/v1/messages", json=body) as answer:
            async for piece in answer.aiter_bytes():
                heard += piece
                if heard.endswith(b": keep-alive\n\n"):
                    stage.watched.gate.set()
                if heard.endswith(b'event: ping\ndata: {"type":"ping"}\n\n'):
                    stage.shaky.open.set()
        start, ping = heard.index(b"event: message_start"), heard.index(b"event: ping")
        assert heard.index(b": keep-alive") < start < ping
        assert b": keep-alive" not in heard[start:]
        assert heard.endswith(b'data: {"type":"message_stop"}\n\n')


async def test_a_sessions_key_finds_it_by_either_header(small: Model) -> None:
    async with staged(small) as (stage, _):
        opened = await stage.tell("/sessions", {"id": "keyed"})
        options: list[dict[str, Any]] = [
            {"api_key": opened["api_key"]},
            {"api_key": None, "auth_token": opened["api_key"]},
        ]
        for option in options:
            client = anthropic_client(stage.app, HERE, "EMPTY", option)
            raw = await client.messages.with_raw_response.create(model=models.ALWAYS, max_tokens=3, messages=HELLO)
            assert raw.headers["x-session-id"] == "keyed"
            assert raw.headers["x-turn-id"] in stage.tree("keyed").turns


async def test_of_two_turns_that_said_the_same_the_thinking_names_the_one_that_is_meant(thinker: Model) -> None:
    async with staged(thinker, "<think>\nHm\n</think>\n\nYes.") as (stage, client):
        first, second = [await said(client, HELLO, None, stream=False) for _ in range(2)]
        for answer in (first, second):
            content = [block.to_dict() for block in answer.content]
            await said(client, [*HELLO, {"role": "assistant", "content": content}, *HELLO], None, stream=False)
        one, other, *after = (await check_session(stage, "run")).calls
        assert [call.after for call in after] == [f"{one.id}.0", f"{other.id}.0"]


async def test_reasoning_that_was_edited_is_a_fork(thinker: Model) -> None:
    async with staged(thinker, "<think>\nHm\n</think>\n\nYes.") as (stage, client):
        answer = await said(client, HELLO, None, stream=False)
        content = [block.to_dict() for block in answer.content]
        content[0]["thinking"] = "Never."
        await said(client, [*HELLO, {"role": "assistant", "content": content}, *HELLO], None, stream=False)
        (_, call) = (await check_session(stage, "run")).calls
        assert call.fork is not None
        assert call.fork.reason == "assistant_edited"
