"""While nothing is said, a connection is kept from looking dead: comments in a stream, white space before JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import msgspec
import pytest

from stenograph.clients import InProcess
from stenograph.core import JSON
from stenograph.engine.script import FaultKind, Script
from stenograph.gateway import HERE
from stenograph.server import model_call
from stenograph.store.memory import MemoryStore
from stenograph.wire import sse
from tests.stage import models
from tests.stage.stage import Stage, chat, user

SHORT = 0.001
PATIENCE, BETWEEN, TOKENS = 0.2, 0.01, 60


@pytest.fixture(scope="module")
def model() -> models.Model:
    return models.model(models.ALWAYS)


@pytest.fixture
async def stage(model: models.Model) -> AsyncIterator[Stage]:
    async with Stage(model, MemoryStore(), heartbeat=SHORT) as one:
        yield one


class Hearing(InProcess):
    """Calls `heard` with every piece of an answer as it arrives."""

    def __init__(self, stage: Stage, heard: Callable[[bytes], None]) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            async def listen(message: Any) -> None:
                heard(message.get("body", b""))
                await send(message)

            await stage.app(scope, receive, listen)

        super().__init__(app)


async def post(stage: Stage, heard: Callable[[bytes], None], **fields: JSON) -> httpx2.Response:
    body = msgspec.json.encode({"model": "m", "messages": [user("hello")], **fields})
    async with httpx2.AsyncClient(transport=Hearing(stage, heard), base_url=HERE, timeout=None) as http:
        return await http.post(chat("s"), content=body)


async def test_a_stream_says_that_it_lives_before_anything_is_sampled(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_call, "KEEP_ALIVE_SECONDS", SHORT)
    stage.watched.gate.clear()

    def heard(piece: bytes) -> None:
        if piece == sse.KEEP_ALIVE:
            stage.watched.gate.set()

    answer = await post(stage, heard, stream=True)
    assert answer.content.startswith(sse.KEEP_ALIVE)
    assert answer.content.endswith(sse.DONE)


async def test_a_stream_says_that_it_lives_while_its_turn_is_recorded(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_call, "KEEP_ALIVE_SECONDS", SHORT)
    stage.shaky.open.clear()
    said: list[bytes] = []

    def heard(piece: bytes) -> None:
        said.append(piece)
        if len(said) > 1 and piece == sse.KEEP_ALIVE:
            stage.shaky.open.set()

    answer = await post(stage, heard, stream=True)
    assert sse.KEEP_ALIVE in answer.content
    assert answer.content.endswith(sse.DONE)


async def test_a_long_json_answer_has_white_space_in_front(stage: Stage) -> None:
    stage.watched.gate.clear()

    def heard(piece: bytes) -> None:
        if piece == model_call.HEARTBEAT:
            stage.watched.gate.set()

    answer = await post(stage, heard)
    assert answer.content.startswith(model_call.HEARTBEAT)
    assert "content-length" not in answer.headers
    assert answer.json()["choices"][0]["finish_reason"]


async def test_it_has_it_also_where_tokens_come_all_the_time(model: models.Model) -> None:
    """Its caller hears nothing of them: a tunnel cuts the connection of an answer that takes its time."""
    async with Stage(model, MemoryStore(), _talking(model), heartbeat=PATIENCE) as stage:
        answer = await post(stage, lambda piece: None)
    assert answer.content.startswith(model_call.HEARTBEAT)
    assert len(answer.json()["choices"][0]["message"]["content"]) == TOKENS


async def test_a_stream_says_that_it_lives_while_what_is_sampled_cannot_be_shown_yet(
    model: models.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the beginning of a stop string."""
    monkeypatch.setattr(model_call, "KEEP_ALIVE_SECONDS", PATIENCE)
    async with Stage(model, MemoryStore(), _talking(model)) as stage:
        answer = await post(stage, lambda piece: None, stream=True, stop="a" * 2 * TOKENS)
    assert sse.KEEP_ALIVE in answer.content
    assert answer.content.endswith(sse.DONE)


def _talking(model: models.Model) -> Script:
    """For longer than anybody's patience, and never silent for as long as that."""
    return Script(replies=((model.tokenizer.encode("a")[0],) * TOKENS,), delay=BETWEEN)


async def test_a_failure_behind_heartbeats_breaks_the_answer_off(stage: Stage) -> None:
    stage.watched.gate.clear()
    beat = asyncio.Event()

    def heard(piece: bytes) -> None:
        if piece == model_call.HEARTBEAT:
            beat.set()
            stage.watched.gate.set()

    with stage.watched.faulty(FaultKind.FAIL_MIDWAY), pytest.raises(httpx2.RemoteProtocolError):
        await post(stage, heard)
    assert beat.is_set()
    await stage.settled()
    assert not stage.tree("s").turns


async def test_without_heartbeats_a_failure_has_its_status(model: models.Model) -> None:
    async with Stage(model, MemoryStore()) as stage:
        with stage.watched.faulty(FaultKind.FAIL_MIDWAY):
            answer = await post(stage, lambda piece: None)
        assert answer.status_code >= 500
        assert answer.json()["error"]["message"]
