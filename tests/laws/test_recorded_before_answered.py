"""Law 5: as long as a turn is not durable, nothing that leaves says that the call succeeded."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from starlette.types import Message, Scope

from stenograph.core import JSON
from stenograph.store.store import Store
from tests.stage.models import Model
from tests.stage.stage import Stage, chat, user
from tests.stage.stores import Load

BODY: dict[str, JSON] = {"model": "m", "messages": [user("hello")], "return_token_ids": True}


class Caller:
    """Speaks ASGI itself, to see each piece of an answer when it leaves."""

    def __init__(self, stage: Stage, body: dict[str, JSON]) -> None:
        self.sent: list[Message] = []
        self._body: bytes | None = msgspec.json.encode(body)
        self._stays = asyncio.Event()
        self._task = asyncio.ensure_future(stage.witness(self._scope(), self._receive, self._send))

    @property
    def content(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    async def answered(self) -> None:
        await self._task

    def _scope(self) -> Scope:
        return {
            "type": "http",
            "method": "POST",
            "path": chat("s"),
            "raw_path": chat("s").encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [],
        }

    async def _receive(self) -> Message:
        if self._body is None:
            await self._stays.wait()
        body, self._body = self._body or b"", None
        return {"type": "http.request", "body": body, "more_body": False}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)


async def until_committing(stage: Stage) -> None:
    """Until the store is asked to keep the turns, and whatever could leave meanwhile has left."""
    await stage.shaky.waiting.wait()
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("n", [1, 3])
async def test_no_byte_of_a_json_answer(model: Model, opened: tuple[Store, Load], n: int) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        with stage.shaky.holding():
            caller = Caller(stage, {**BODY, "n": n})
            await until_committing(stage)
            assert caller.sent == []
            assert stage.tree("s").turns == {}
        await caller.answered()
        assert caller.sent[0]["status"] == 200
        assert stage.witness.breaches == []
        assert stage.witness.successes > 0


@pytest.mark.parametrize("n", [1, 3])
async def test_no_end_of_a_stream(model: Model, opened: tuple[Store, Load], n: int) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        with stage.shaky.holding():
            caller = Caller(stage, {**BODY, "n": n, "stream": True})
            await until_committing(stage)
            assert caller.content.count(b'"token_ids"') > 0
            assert b'"finish_reason":"' not in caller.content
            assert b"[DONE]" not in caller.content
            assert stage.tree("s").turns == {}
        await caller.answered()
        assert caller.content.endswith(b"data: [DONE]\n\n")
        assert caller.content.count(b'"finish_reason":"') == n
        assert stage.witness.breaches == []


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_no_record_no_success(model: Model, opened: tuple[Store, Load], stream: bool) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        with stage.shaky.failing():
            answer = await stage.say("s", [user("hello")], stream=stream)
        assert not answer.complete
        assert answer.error is not None
        assert answer.error["type"] == "store_error"
        assert stage.tree("s").turns == {}
        assert load("s") is None
        assert (await stage.say("s", [user("hello")], stream=stream)).complete
        assert (await stage.get("/sessions/s"))["attempts"]["gateway_error"] == 1
        assert stage.witness.breaches == []
