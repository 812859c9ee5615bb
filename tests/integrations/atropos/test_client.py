"""A real `AsyncOpenAI` over a managed server: its answers have ids and logprobs, and nobody asked for them."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion

from stenograph.integrations.atropos import ManagedClient, ManagedServer
from tests.integrations.atropos.servers import ASKED, Server, check

ASK: Any = [ASKED]


async def test_answers_carry_tokens_without_asking() -> None:
    server = Server("Hello there")
    managed = ManagedServer(server)
    client = ManagedClient(managed, "policy")
    assert isinstance(client, openai.AsyncOpenAI)
    answer: Any = await client.chat.completions.create(messages=ASK, max_tokens=16)  # type: ignore[call-overload]
    assert answer.model == "policy"
    assert answer.prompt_token_ids == server.sent(0)
    [choice] = answer.choices
    assert choice.token_ids == server.said[0][0]
    assert [entry.logprob for entry in choice.logprobs.content] == pytest.approx(server.told[0][0], rel=1e-6)
    assert isinstance(answer, ChatCompletion)
    check(managed, server)


async def test_completions_carry_them_too() -> None:
    server = Server("Hello there")
    answer: Any = await ManagedClient(ManagedServer(server), "policy").completions.create(model="m", prompt="Well, ")
    assert answer.choices[0].token_ids == server.said[0][0]
    assert answer.choices[0].logprobs.token_logprobs == pytest.approx(server.told[0][0], rel=1e-6)
    assert isinstance(answer, Completion)


async def test_a_stream_carries_them_too() -> None:
    server = Server("Hello there")
    stream = await ManagedClient(ManagedServer(server), "policy").chat.completions.create(
        model="policy", messages=ASK, stream=True
    )
    chunks: list[Any] = [chunk async for chunk in stream]
    ids = [id for chunk in chunks for choice in chunk.choices for id in getattr(choice, "token_ids", None) or ()]
    assert ids == server.said[0][0]


async def test_copies_share_the_session_and_a_reset_opens_another() -> None:
    server = Server("Hello there", "And again", "Once more", "And more")
    managed = ManagedServer(server)
    client = ManagedClient(managed, "policy")
    said: Any = {"role": "assistant", "content": "Hello there"}
    await client.chat.completions.create(model="policy", messages=ASK)
    for copy in (client.copy(), client.with_options(timeout=5.0)):
        assert type(copy) is ManagedClient
        assert copy.managed_server is managed
        await copy.chat.completions.create(model="policy", messages=[*ASK, said, *ASK])
    assert server.sent(1)[: len(server.path(0))] == server.path(0)
    assert len(managed.current_nodes) == 2
    client.reset()
    assert managed.current_nodes == []
    await client.close()
    await client.chat.completions.create(model="policy", messages=ASK)
    assert [node.tokens for node in managed.current_nodes] == [server.path(3)]


async def test_errors_are_openais_own() -> None:
    client = ManagedClient(ManagedServer(Server()), "policy")
    with pytest.raises(openai.BadRequestError, match="messages"):
        await client.chat.completions.create(model="policy", messages=[])
