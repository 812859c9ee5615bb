"""Whatever is sent, it is the sender's mistake and is told so: never a 500, never a trace in the record."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from starlette.types import Message

from stenograph.core import JSON, MOST_NESTED
from stenograph.errors import NotFound
from stenograph.server import app, session_calls
from stenograph.store.memory import MemoryStore
from stenograph.wire.openapi import Route
from tests.stage import models
from tests.stage.models import LOOK, Model
from tests.stage.stage import Stage, chat, user

CHAT: dict[str, JSON] = {"model": "m", "messages": [user("hello")], "max_tokens": 3}
TAKING_A_BODY = [
    route.path for route, _ in (*app.MODEL_CALLS, *app.SESSION_CALLS, *app.LOOKS) if route.body is not None
]
SMALL = 2000
"""Bytes that a body may have on this stage."""


@pytest.fixture(scope="module")
def model() -> Model:
    return models.model(models.ALWAYS)


@pytest.fixture
async def stage(model: Model) -> AsyncIterator[Stage]:
    async with Stage(model, MemoryStore(), max_body_bytes=SMALL) as playing:
        yield playing


def at(path: str) -> str:
    return path.replace("{id}", "s").replace("{group}", "g")


async def refusal(stage: Stage, method: str, path: str, **sent: Any) -> tuple[int, str, str | None]:
    response = await stage.http.request(method, path, **sent)
    error = response.json()["error"]
    return response.status_code, error["message"], error["param"]


# ------------------------------------------------------------------------------------------------ whatever is sent

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values: st.SearchStrategy[JSON] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


def fields(route: Route) -> st.SearchStrategy[str]:
    return st.sampled_from(route.body.__struct_fields__)


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[str, bytes]:
    """A call with some of its fields set to anything, and perhaps a byte or two of its body lost or changed."""
    route = draw(st.sampled_from([one for one, _ in (*app.MODEL_CALLS, *app.SESSION_CALLS, *app.LOOKS) if one.body]))
    good = CHAT if "messages" in route.body.__struct_fields__ else {}
    body = json.dumps({**good, **draw(st.dictionaries(fields(route), values, max_size=2))}).encode()
    place = draw(st.integers(0, len(body) - 1))
    cut = draw(
        st.sampled_from([body, body, body[:place], body[:place] + bytes([draw(st.integers(0, 255))]) + body[place:]])
    )
    return at(route.path), cut


@given(st.lists(spoilt(), min_size=5, max_size=15))
def test_no_body_is_a_bug(model: Model, calls: list[tuple[str, bytes]]) -> None:
    async def all_sent() -> None:
        async with Stage(model, MemoryStore()) as stage:
            await stage.tell("/sessions", {"id": "s", "group": "g"})
            for path, body in calls:
                response = await stage.http.post(path, content=body)
                assert response.status_code < 500, (path, body, response.text)
                if response.status_code >= 400:
                    assert response.json()["error"]["message"]

    asyncio.run(all_sent())


# ------------------------------------------------------------------------------------------------------ every route


@pytest.mark.parametrize("path", TAKING_A_BODY)
async def test_a_body_has_a_bound_everywhere(stage: Stage, path: str) -> None:
    status, message, _ = await refusal(stage, "POST", at(path), content=b'{"x": "' + b"x" * SMALL + b'"}')
    assert (status, message) == (413, f"the body is larger than {SMALL} bytes")


@pytest.mark.parametrize("path", TAKING_A_BODY)
async def test_a_compressed_body_is_said_to_be_one(stage: Stage, path: str) -> None:
    packed = {"content": gzip.compress(b"{}"), "headers": {"content-encoding": "gzip"}}
    status, message, _ = await refusal(stage, "POST", at(path), **packed)
    assert (status, message) == (400, "the body is compressed (Content-Encoding: gzip): send it as it is")


@pytest.mark.parametrize(
    ("body", "problem"), [(b"", "it is empty"), (b'{"model": "\xff"}', "it is not UTF-8"), (b'{"a', "truncated")]
)
async def test_what_is_no_json_is_said(stage: Stage, body: bytes, problem: str) -> None:
    status, message, _ = await refusal(stage, "POST", chat("s"), content=body)
    assert status == 400
    assert message.startswith("the body is not JSON: ")
    assert message.endswith(problem)


@pytest.mark.parametrize("behind", ['"', ' and on"', '\\n"', '\\u0041"'])
async def test_half_a_character_is_told_where_it_stands(stage: Stage, behind: str) -> None:
    before = '{"model": "\\\\ud83d \\ud83d\\ude00 '
    body = f"{before}\\ud83d{behind}, {json.dumps('messages')}: []}}".encode()
    status, message, _ = await refusal(stage, "POST", chat("s"), content=body)
    told = f"\\ud83d (byte {len(before)}) is half a character: a text was cut inside of one"
    assert (status, message) == (400, f"the body is not JSON: {told}")


@pytest.mark.parametrize("path", TAKING_A_BODY)
async def test_a_caller_that_leaves_within_its_body_troubles_nobody(stage: Stage, path: str) -> None:
    said: Iterator[Message] = iter(
        [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> Message:
        return next(said, {"type": "http.disconnect"})

    async def send(message: Message) -> None: ...

    scope = {"type": "http", "method": "POST", "path": at(path), "root_path": "", "query_string": b"", "headers": []}
    await stage.app(scope, receive, send)
    assert (await stage.get("/sessions"))["sessions"] == []


async def test_a_wrong_method_is_told_the_right_one(stage: Stage) -> None:
    response = await stage.http.get(chat("s"))
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert response.json()["error"]["message"] == f"{chat('s')} takes POST, not GET"


async def test_a_route_that_is_not_there_is_said(stage: Stage) -> None:
    status, message, _ = await refusal(stage, "GET", "/session")
    assert (status, message) == (NotFound.status, "there is no such route: GET /session")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/chat/completions", "ends in /v1"),
        ("/s/a/messages", "ends in /v1"),
        ("/s/a/v1/v1/messages", "has /v1 twice"),
        ("/v1/embeddings", "POST /v1/embeddings"),
    ],
)
async def test_a_base_url_without_its_v1_or_with_two_is_told(stage: Stage, path: str, hint: str) -> None:
    status, message, _ = await refusal(stage, "POST", path)
    assert status == NotFound.status
    assert hint in message
    assert ("base URL" in message) == (hint[0] != "P")


@pytest.mark.parametrize("query", ["sate=open", "since=nan", "since=inf", "limit=0", "state=shut", "group=a/b"])
async def test_a_query_is_read_as_a_body_is(stage: Stage, query: str) -> None:
    status, message, param = await refusal(stage, "GET", f"/sessions?{query}")
    assert (status, param) == (400, query.partition("=")[0])
    assert message


async def test_a_bug_of_ours_has_the_shape_of_an_error(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_calls, "_summary", lambda session: 1 / 0)
    monkeypatch.setattr(stage._at_desk(), "session_of", lambda *named: 1 / 0)
    await stage.tell("/sessions", {"id": "s"})
    for method, path in (("GET", "/sessions/s"), ("POST", chat("s"))):
        response = await stage.http.request(method, path, json=CHAT)
        assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")


# --------------------------------------------------------------------------------------------------- values of JSON


def nested(levels: int) -> JSON:
    value: JSON = []
    for _ in range(levels):
        value = [value]
    return value


def calling(arguments: JSON) -> list[JSON]:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": arguments}}
    called: JSON = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [user("hello"), called, {"role": "tool", "tool_call_id": "a", "content": "seen"}]


TOO_DEEP: dict[str, JSON] = {
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"x": nested(MOST_NESTED)}}}],
    "messages": calling({"x": nested(MOST_NESTED)}),
}


@pytest.mark.parametrize("field", TOO_DEEP)
async def test_what_is_nested_too_deeply_is_named(model: Model, field: str) -> None:
    async with Stage(model, MemoryStore()) as stage:
        for path in (chat("s"), "/tokenize"):
            body = {"messages": [user("hello")], "model": "m", field: TOO_DEEP[field]}
            status, message, param = await refusal(stage, "POST", path.replace("/tokenize", "/s/s/tokenize"), json=body)
            assert (status, param) == (400, field)
            assert "nested" in message


@pytest.mark.parametrize(
    "arguments",
    [json.dumps({"x": nested(900)}), "[" * 100_000, "{'x': '\\ud800'}", "{'x': 1" + "0" * 50 + "}", "{'x': {1, 2}}"],
    ids=["deep", "endless", "half a pair", "large", "a set"],
)
async def test_arguments_that_are_no_object_are_text(model: Model, arguments: str) -> None:
    async with Stage(model, MemoryStore()) as stage:
        for _ in range(2):
            answer = await stage.say("s", calling(arguments[:5000]), tools=[LOOK], max_tokens=3)
            assert answer.complete, answer.error
        assert (await stage.get("/sessions/s"))["forks"] == {"resampled": 1}


@pytest.mark.parametrize("field", ["stop_token_ids", "logit_bias"])
async def test_an_id_that_is_no_token_never_reaches_an_engine(stage: Stage, field: str) -> None:
    foreign = stage._model.tokenizer.vocab_size
    body = CHAT | {field: [foreign] if field == "stop_token_ids" else {str(foreign): 1}}
    status, message, param = await refusal(stage, "POST", chat("s"), json=body)
    assert (status, param) == (400, field)
    assert f"{foreign} is outside the vocabulary" in message
    assert stage.watched.calls == []
