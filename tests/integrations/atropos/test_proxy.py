"""Atropos' proxy over a gateway that is served: its own answers, and behind each the gateway's record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from starlette.types import ASGIApp, Message

from stenograph import Gateway
from stenograph.clients import InProcess
from stenograph.core import JSON
from stenograph.engine.script import Script
from stenograph.integrations import doors
from stenograph.integrations.atropos.homes import GatewayHome
from tests.stage.stage import user

VLLM = "http://gpu-1:8000"


class Proxy:
    def __init__(self, gateway: Gateway, app: ASGIApp, http: httpx2.AsyncClient) -> None:
        self.gateway = gateway
        self.app = app
        self.http = http

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self.http.get(f"/atropos{path}", headers=headers)

    async def post(self, path: str, body: JSON, **headers: str) -> httpx2.Response:
        return await self.http.post(f"/atropos{path}", json=body, headers=headers)

    async def session(self, **wanted: JSON) -> str:
        created: dict[str, JSON] = (await self.post("/sessions/create", wanted)).json()
        uuid: str = created["uuid"]
        return uuid

    async def say(self, uuid: str, *messages: JSON, **fields: JSON) -> Any:
        answer = await self.post(f"/{uuid}/v1/chat/completions", {"messages": list(messages), **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def nodes(self, uuid: str) -> list[Any]:
        found: list[Any] = (await self.get(f"/{uuid}/nodes")).json()["nodes"]
        return found


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[Proxy]:
    async with Gateway(**{"engine": "scripted=", **options}) as gateway:
        app = doors.doors(gateway)
        async with httpx2.AsyncClient(transport=InProcess(app), base_url="http://here", timeout=30) as http:
            yield Proxy(gateway, app, http)


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with served() as one:
        yield one


async def test_an_answer_has_ids_and_logprobs_without_asking(proxy: Proxy) -> None:
    uuid = await proxy.session()
    answer = await proxy.say(uuid, user("hello"))
    (choice,) = answer["choices"]
    assert len(choice["token_ids"]) == len(choice["logprobs"]["content"]) > 0
    (node,) = await proxy.nodes(uuid)
    assert node["tokens"] == answer["prompt_token_ids"] + choice["token_ids"]
    assert node["masked_tokens"] == [-100] * len(answer["prompt_token_ids"]) + choice["token_ids"]


async def test_what_is_left_out_is_as_there(proxy: Proxy) -> None:
    uuid = await proxy.session()
    await proxy.say(uuid, user("hello"), tools=None, stop=None)
    (sample,) = (await proxy.http.get(f"/sessions/{uuid}/samples")).json()["samples"]
    (span,) = sample["spans"]
    assert (span["sampling"]["max_tokens"], span["sampling"]["temperature"]) == (1024, 1.0)
    assert span["model"] == proxy.gateway.model


async def test_a_second_turn_extends_the_first_and_is_what_render_said(proxy: Proxy) -> None:
    uuid = await proxy.session()
    first = (await proxy.say(uuid, user("hello")))["choices"][0]["message"]
    history = [user("hello"), first, user("and then?")]
    rendered = (await proxy.post(f"/{uuid}/v1/chat/completions/render", {"messages": history})).json()
    assert rendered["num_tokens"] == len(rendered["token_ids"])
    assert "and then?" in rendered["prompt_text"]
    assert len(await proxy.nodes(uuid)) == 1
    answer = await proxy.say(uuid, *history)
    assert answer["prompt_token_ids"] == rendered["token_ids"]
    assert len(await proxy.nodes(uuid)) == 1


@pytest.mark.parametrize(("every", "count"), [(False, 1), (True, 2)])
async def test_a_tree_has_every_turn(proxy: Proxy, every: bool, count: int) -> None:
    uuid = await proxy.session(track_tree=every)
    first = (await proxy.say(uuid, user("hello")))["choices"][0]["message"]
    await proxy.say(uuid, user("hello"), first, user("and then?"))
    assert len(await proxy.nodes(uuid)) == count
    (listed,) = (await proxy.get("/sessions")).json()["sessions"]
    assert (listed["uuid"], listed["num_nodes"]) == (uuid, count)


async def test_a_deleted_session_is_gone_there_and_complete_here(proxy: Proxy) -> None:
    uuid = await proxy.session()
    await proxy.say(uuid, user("hello"))
    assert (await proxy.http.delete(f"/atropos/{uuid}")).json() == {"status": "deleted", "uuid": uuid}
    for gone in (await proxy.get(f"/{uuid}/nodes"), await proxy.http.delete(f"/atropos/{uuid}")):
        assert (gone.status_code, gone.json()["error"]["code"]) == (404, "session_not_found")
    assert (await proxy.get("/sessions")).json() == {"sessions": []}
    assert (await proxy.http.get(f"/sessions/{uuid}")).json()["state"] == "completed"


async def test_a_session_that_was_not_created_there_is_none(proxy: Proxy) -> None:
    """The gateway's own routes open one for any name; Atropos' proxy never did."""
    answer = await proxy.post("/made-up/v1/chat/completions", {"messages": [user("hello")]})
    assert answer.status_code == 404
    assert (await proxy.http.get("/sessions")).json() == {"sessions": []}


async def test_reasoning_and_answer_are_one_text_and_the_turn_extends_all_the_same(
    shared_tokenizers: dict[str, Path], tmp_path: Path
) -> None:
    said = "<think>\nhm\n</think>\n\nfour"
    engine, qwen3 = _scripted(tmp_path, Script(replies=(said, "five"))), str(shared_tokenizers["qwen3"])
    async with served(engine=engine, tokenizer=qwen3, history="verbatim") as proxy:
        uuid = await proxy.session()
        answer = await proxy.say(uuid, user("2+2?"))
        assert answer["choices"][0]["message"]["content"] == said
        await proxy.say(uuid, user("2+2?"), {"role": "assistant", "content": said}, user("and one?"))
        assert (await proxy.http.get(f"/sessions/{uuid}")).json()["forks"] == {}


async def test_an_sdks_retry_is_answered_with_the_turn_that_is_there(proxy: Proxy) -> None:
    uuid = await proxy.session()
    body = {"messages": [user("hello")]}
    first = await proxy.post(f"/{uuid}/v1/chat/completions", body)
    again = await proxy.post(f"/{uuid}/v1/chat/completions", body, **{"X-Stainless-Retry-Count": "1"})
    assert again.json()["choices"] == first.json()["choices"]
    assert again.headers["x-turn-id"] == first.headers["x-turn-id"]
    assert len(await proxy.nodes(uuid)) == 1


async def test_a_caller_that_goes_away_is_the_gateways_to_deal_with(tmp_path: Path) -> None:
    async with served(grace=0.0, engine=_scripted(tmp_path, Script(first_delay=60.0))) as proxy:
        uuid = await proxy.session()
        body = msgspec.json.encode({"messages": [user("hello")]})
        heard: list[Message] = [{"type": "http.disconnect"}, {"type": "http.request", "body": body}]

        async def receive() -> Message:
            return heard.pop()

        async def send(message: Message) -> None:
            raise AssertionError(message)

        path = f"/atropos/{uuid}/v1/chat/completions"
        scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
        await proxy.app(scope, receive, send)
        registry = proxy.gateway._at_desk().registry
        await registry.flights(registry.must(uuid)).ended()
        assert (await proxy.http.get(f"/sessions/{uuid}")).json()["attempts"]["disconnected"] == 1
        assert await proxy.nodes(uuid) == []


def _scripted(folder: Path, script: Script) -> str:
    (folder / "script.json").write_bytes(msgspec.json.encode(script))
    return f"scripted={folder / 'script.json'}"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": []}, "messages"),
        ({}, "messages"),
        ({"messages": [user("x")], "stream": True}, "stream"),
        ({"messages": [user("x")], "temperature": "warm"}, "temperature"),
        ({"messages": "x"}, "messages"),
        ([], "object"),
    ],
)
async def test_a_body_that_is_wrong_is_refused_by_name(proxy: Proxy, body: JSON, words: str) -> None:
    answer = await proxy.post(f"/{await proxy.session()}/v1/chat/completions", body)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (400, True), answer.text


async def test_no_request_makes_it_call_anywhere_else(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GatewayHome, "_where", lambda self: [VLLM])
    for own in (VLLM, f"{VLLM}/v1", f"{VLLM}/"):
        created = await proxy.post("/sessions/create", {"base_url": own})
        assert created.json()["base_url"] == VLLM
        assert (await proxy.post("/setup", {"servers": [{"base_url": own}]})).status_code == 200
    for foreign in ("http://evil:1", f"{VLLM}1", f"{VLLM}/v1/v1", "file:///etc/passwd", ""):
        for answer in (
            await proxy.post("/sessions/create", {"base_url": foreign}),
            await proxy.post("/setup", {"servers": [{"base_url": own}, {"base_url": foreign}]}),
        ):
            assert answer.status_code == 404
            assert f"no engine at {foreign}; there is {VLLM}" in answer.json()["error"]["message"]


async def test_with_an_admin_key_each_call_needs_its_own() -> None:
    async with served(admin_key="secret") as proxy:
        admin = {"Authorization": "Bearer secret"}
        assert (await proxy.post("/sessions/create", {})).status_code == 401
        assert (await proxy.get("/sessions")).status_code == (await proxy.get("/servers")).status_code == 401
        created = (await proxy.post("/sessions/create", {}, **admin)).json()
        uuid, key = created["uuid"], {"Authorization": f"Bearer {created['api_key']}"}
        assert (await proxy.get(f"/{uuid}/nodes")).status_code == 401
        body = {"messages": [user("hello")]}
        assert (await proxy.post(f"/{uuid}/v1/chat/completions", body)).status_code == 401
        assert (await proxy.post(f"/{uuid}/v1/chat/completions", body, **key)).status_code == 200
        assert len((await proxy.get(f"/{uuid}/nodes", **key)).json()["nodes"]) == 1
        assert (await proxy.http.delete(f"/atropos/{uuid}")).status_code == 401


async def test_who_is_there(proxy: Proxy) -> None:
    await proxy.session()
    health = (await proxy.get("/health")).json()
    model = proxy.gateway.model
    assert health == {"status": "ok", "model": model, "sessions": 1, "servers": 1, "healthy_servers": 1}
    (listed,) = (await proxy.get("/servers")).json()["servers"]
    assert (listed["index"], listed["healthy"], listed["server_type"]) == (0, True, "scripted")
    assert (await proxy.get("/v1/models")).json()["data"][0]["id"] == model


async def test_what_is_not_its_own_is_the_gateways(proxy: Proxy) -> None:
    assert (await proxy.http.get("/health")).json()["engines"]
    assert (await proxy.http.get("/atropos")).status_code == 404
    missing = await proxy.get("/nowhere")
    assert (missing.status_code, "error" in missing.json()) == (405, True)


async def test_where_the_sdk_is_missing_the_answer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(gateway: Gateway) -> Iterator[None]:
        raise ImportError("No module named 'openai'")

    monkeypatch.setattr(doors, "_proxy", missing)
    async with served() as proxy:
        answer = await proxy.get("/health")
        assert (answer.status_code, "stenograph[openai]" in answer.json()["error"]["message"]) == (404, True)
