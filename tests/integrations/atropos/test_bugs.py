"""The twelve bugs that Atropos' own `ManagedServer` is known for: none of them is here. Each by its number."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import openai
import pytest

from stenograph.engine.http import root_of
from stenograph.integrations.atropos import ManagedClient, ManagedServer, managed_server
from tests.integrations.atropos.servers import ASKED, Server, check, shared, trained

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "looks out of a window",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


async def test_bug_01_stop_token_twice() -> None:
    server = Server("Hello there", "And again")
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED])
    await managed.chat_completion(messages=[ASKED, said("Hello there"), ASKED])
    assert server.sent(1)[: len(server.path(0))] == server.path(0)
    assert "Hello there<|im_end|>\n<|im_start|>user" in server.text(1)
    assert len(managed.current_nodes) == 1
    check(managed, server)


async def test_bug_02_longest_prefix_wins() -> None:
    server = Server(("Yes", "Yes sir"), "Indeed", "Indeed")
    managed = ManagedServer(server)
    await managed.completion(prompt="Is it so? ", n=2)
    await managed.completion(prompt="Is it so? Yes sir, says he. ")
    assert server.sent(1)[: len(server.path(0, 1))] == server.path(0, 1)
    await managed.completion(prompt="Is it so? Yes, says he. ")
    assert server.sent(2)[: len(server.path(0, 0))] == server.path(0, 0)
    assert [trained(node) for node in managed.current_nodes] == [
        server.said[0][0] + server.said[2][0],
        server.said[0][1] + server.said[1][0],
    ]
    check(managed, server)


async def test_bug_03_masks_of_earlier_turns_survive_completion() -> None:
    server = Server("World", "Goodbye")
    managed = ManagedServer(server)
    await managed.completion(prompt="Hello ")
    await managed.completion(prompt="Hello World, and then: ")
    [node] = managed.current_nodes
    assert trained(node) == server.said[0][0] + server.said[1][0]
    assert node.full_text == "Hello World<|im_end|>, and then: Goodbye"
    check(managed, server)


THOUGHT = "<think>\nTwo and two are easy enough.\n</think>\n\nFour apples"


async def test_bug_04_think_blocks_are_preserved_where_asked() -> None:
    server = Server(THOUGHT, "Five apples", files=shared("qwen3"))
    managed = ManagedServer(server, preserve_think_blocks=True)
    answer = await managed.chat_completion(messages=[ASKED])
    assert answer.choices[0].message.content == THOUGHT
    await managed.chat_completion(messages=[ASKED, answer.choices[0].message, ASKED])
    assert server.sent(1)[: len(server.path(0))] == server.path(0)
    assert [trained(node) for node in managed.current_nodes] == [server.said[0][0] + server.said[1][0]]
    check(managed, server)


async def test_bug_04_think_blocks_are_known_again_where_the_content_comes_in_parts() -> None:
    server = Server(THOUGHT, "Five apples", files=shared("qwen3"))
    managed = ManagedServer(server, preserve_think_blocks=True)
    await managed.chat_completion(messages=[ASKED])
    parts = [{"type": "text", "text": THOUGHT[:9]}, {"type": "text", "text": THOUGHT[9:]}]
    await managed.chat_completion(messages=[ASKED, {"role": "assistant", "content": parts}, ASKED])
    assert [trained(node) for node in managed.current_nodes] == [server.said[0][0] + server.said[1][0]]
    check(managed, server)


async def test_bug_04_think_blocks_that_the_template_drops_are_a_fork_that_says_so() -> None:
    server = Server(THOUGHT, "Five apples", files=shared("qwen3"))
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED])
    await managed.chat_completion(messages=[ASKED, said(THOUGHT), ASKED])
    assert "easy enough" not in server.text(1)
    assert "Four apples" in server.text(1)
    _, session = await managed.opened()
    assert [sample.fork and sample.fork.reason for sample in session.samples()] == [None, "template_rewrote_history"]
    assert [trained(node) for node in managed.current_nodes] == [server.said[0][0], server.said[1][0]]
    check(managed, server)


async def test_bug_05_a_second_branch_trains_all_of_its_turns() -> None:
    server = Server("Hello there", "One way", "Another way")
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED])
    for content in ("this", "that"):
        turn = {"role": "user", "content": content}
        await managed.chat_completion(messages=[ASKED, said("Hello there"), turn])
    assert server.sent(2)[: len(server.path(0))] == server.path(0)
    [first, second] = managed.current_nodes
    assert trained(first) == server.said[0][0] + server.said[1][0]
    assert trained(second) == server.said[0][0] + server.said[2][0]
    check(managed, server)


async def test_bug_06_siblings_that_say_the_same_stay_apart() -> None:
    server = Server(("Fine weather",) * 3, "Indeed")
    managed = ManagedServer(server, track_tree=True)
    await managed.chat_completion(messages=[ASKED], n=3)
    nodes = managed.sequences
    assert len(nodes) == 3
    assert [trained(node) for node in nodes.values()] == server.said[0]
    await managed.chat_completion(messages=[ASKED, said("Fine weather"), ASKED])
    assert len(managed.sequences) == 4
    check(managed, server)


async def test_bug_06_one_of_two_equal_siblings_is_extended() -> None:
    server = Server(("Fine weather", "Fine weather"), "Indeed")
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED], n=2)
    await managed.chat_completion(messages=[ASKED, said("Fine weather"), ASKED])
    assert sorted(len(trained(node)) for node in managed.current_nodes) == sorted(
        [len(server.said[0][0]), len(server.said[0][1]) + len(server.said[1][0])]
    )
    check(managed, server)


async def test_bug_07_a_tree_sends_ids_too() -> None:
    server = Server("Hello there", "And again")
    managed = ManagedServer(server, track_tree=True)
    await managed.chat_completion(messages=[ASKED])
    await managed.chat_completion(messages=[ASKED, said("Hello there"), ASKED])
    assert server.sent(1)[: len(server.path(0))] == server.path(0)
    state = managed.get_state()
    assert list(state["sequences"]) == list(state["tree"])
    first, second = state["sequences"].values()
    assert (trained(first), trained(second)) == (server.said[0][0], server.said[1][0])
    check(managed, server)


async def test_bug_08_each_answer_has_the_ids_of_its_own_context() -> None:
    server = Server("Hello there", ("Another one", "Something else"))
    client = ManagedClient(ManagedServer(server), "policy")
    await client.chat.completions.create(model="policy", messages=[{"role": "user", "content": "first"}])
    answer: Any = await client.chat.completions.create(
        model="policy", messages=[{"role": "user", "content": "second"}], n=2
    )
    assert answer.prompt_token_ids == server.sent(1)
    assert [choice.token_ids for choice in answer.choices] == server.said[1]
    told = [[entry.logprob for entry in choice.logprobs.content] for choice in answer.choices]
    assert told == [pytest.approx(logprobs, rel=1e-6) for logprobs in server.told[1]]


@pytest.mark.parametrize("reason", ["length", "abort"])
async def test_bug_09_why_a_reply_ended_is_told_with_tools_too(reason: str) -> None:
    server = Server("Let me see", files=shared("qwen2.5"))
    server.reasons = reason
    managed = ManagedServer(server, tool_parser="hermes")
    answer = await managed.chat_completion(messages=[ASKED], tools=[LOOK])
    assert answer.choices[0].finish_reason == reason
    assert [node.metadata for node in managed.current_nodes] == [{"finish_reason": reason}]
    check(managed, server)


async def test_bug_09_reasons_as_sglang_gives_them() -> None:
    server = Server("Let me see")
    close = server.known.added["<|im_end|>"]
    server.reasons = {"type": "stop", "matched": close}
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED])
    _, session = await managed.opened()
    assert [turn.stop_reason for turn in session.turns.values()] == [close]
    assert [node.metadata for node in managed.current_nodes] == [{"finish_reason": "stop"}]


async def test_bug_10_a_logprob_that_is_missing_is_never_made_up() -> None:
    server = Server("Hello there", "Hello again")
    server.without = 1
    managed = ManagedServer(server)
    with pytest.raises(openai.InternalServerError, match="logprobs") as failed:
        await managed.chat_completion(messages=[ASKED])
    assert failed.value.status_code == 502
    assert managed.current_nodes == []
    server.without = 0
    await managed.chat_completion(messages=[ASKED])
    [node] = managed.current_nodes
    assert node.tokens == server.path(1)


@pytest.mark.parametrize(
    "lie",
    [
        lambda told: None,
        lambda told: told[:3],
        lambda told: (*told[:3], None),
        lambda told: (7, *told[1:]),
        lambda told: (told[0], 7, *told[2:]),
        lambda told: (told[0], [None], *told[2:]),
        lambda told: (*told[:2], [None], told[3]),
        lambda told: (*told[:2], told[2][0], told[3]),
        lambda told: (*told[:3], [None]),
        lambda told: (*told[:3], ["eos"]),
        lambda told: (*told[:3], [{"type": "stop", "matched": [2]}]),
        lambda told: (*told[:3], [{"matched": 2}]),
        lambda told: (told[0][1:], *told[1:]),
    ],
)
async def test_bug_10_an_answer_of_another_shape_is_the_servers_fault(lie: Any) -> None:
    server = Server("Hello there", "Hello again")
    server.lie = lie
    managed = ManagedServer(server)
    with pytest.raises(openai.InternalServerError) as failed:
        await managed.chat_completion(messages=[ASKED])
    assert failed.value.status_code == 502
    assert managed.current_nodes == []
    server.lie = None
    await managed.chat_completion(messages=[ASKED])
    check(managed, server)


async def test_bug_10_ids_and_logprobs_may_be_arrays() -> None:
    server = Server("Hello there")
    server.lie = lambda told: (np.array(told[0]), [np.array(told[1][0])], [np.array(told[2][0])], told[3])
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED])
    check(managed, server)


async def test_bug_11_tools_are_never_dropped_silently() -> None:
    call = '<tool_call>\n{"name": "look", "arguments": {"city": "Paris"}}\n</tool_call>'
    server = Server(call, "It rains", files=shared("qwen2.5"))
    managed = ManagedServer(server)
    answer = await managed.chat_completion(messages=[ASKED], tools=[LOOK])
    assert "looks out of a window" in server.text(0)
    assert answer.choices[0].finish_reason == "tool_calls"
    made: Any = answer.choices[0].message.tool_calls
    assert made[0]["function"]["name"] == made[0].function.name == "look"
    result = {"role": "tool", "tool_call_id": made[0]["id"], "content": "rain"}
    await managed.chat_completion(messages=[ASKED, answer.choices[0].message, result], tools=[LOOK])
    assert server.sent(1)[: len(server.path(0))] == server.path(0)
    [node] = managed.current_nodes
    assert trained(node) == server.said[0][0] + server.said[1][0]
    check(managed, server)


V1_HOST = "http://v1-gpu:8000/v1"


async def test_bug_12_a_host_may_be_called_v1() -> None:
    server, other = Server("Hello there", "And again"), Server()
    server.config.base_url, other.config.base_url = V1_HOST, "http://v1-gpu:8001/v1"
    async with managed_server(SimpleNamespace(servers=[other, server]), base_url=V1_HOST) as managed:
        client = ManagedClient(managed, "policy", base_url=V1_HOST)
        assert str(client.base_url) == f"{V1_HOST}/"
        await client.chat.completions.create(model="policy", messages=[{"role": "user", "content": "first"}])
        assert (len(server.calls), len(other.calls)) == (1, 0)
    assert root_of(V1_HOST) == "http://v1-gpu:8000"
