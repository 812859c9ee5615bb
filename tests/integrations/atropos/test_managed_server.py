"""What environments of Atropos' do with a managed server, beside its twelve bugs."""

from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from stenograph import CallerError, ConfigError, Gateway
from stenograph.core import EngineInfo
from stenograph.engine.given import Answer, GivenEngine
from stenograph.integrations.atropos import ManagedServer, backend, leaving, managed_server
from tests.integrations.atropos.servers import ASKED, SMOLLM2, Server, check, fast, trained


async def test_without_a_template_messages_are_lines() -> None:
    server = Server("There are four")
    server.tokenizer.chat_template = None
    managed = ManagedServer(server)
    system = {"role": "system", "content": "Count."}
    await managed.chat_completion(messages=[system, ASKED])
    assert server.text(0) == server.calls[0]["prompt"] == "system: Count.\nuser: How many?"
    check(managed, server)


async def test_a_trailing_assistant_message_is_continued() -> None:
    server = Server("are four apples")
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED, {"role": "assistant", "content": "There"}])
    assert server.text(0).endswith("<|im_start|>assistant\nThere")
    check(managed, server)


async def test_a_group_keeps_its_places() -> None:
    server = Server(("One apple", "Two apples", "Three apples"), "Yes indeed", "Not at all")
    managed = ManagedServer(server)
    answer = await managed.chat_completion(messages=[ASKED], n=3)
    for place in (2, 0):
        await managed.chat_completion(messages=[ASKED, answer.choices[place].message, ASKED])
    paths = [node.tokens for node in managed.current_nodes]
    assert paths == [server.path(2), server.path(0, 1), server.path(1)]
    assert [trained(node)[: len(said)] for node, said in zip(managed.current_nodes, server.said[0], strict=True)] == (
        server.said[0]
    )
    check(managed, server)


async def test_the_split_of_a_request_goes_to_the_server_that_counts() -> None:
    server = Server("Hello there", "Hello there", "Hello there")
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED], split="eval")
    await managed.completion(prompt="Hello", split="eval")
    await managed.completion(prompt="Hello")
    assert [call["split"] for call in server.calls] == ["eval", "eval", "train"]


class Patient:
    """An engine of one's own that answers when it is told to."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[list[int]] = asyncio.Queue()
        self.free = asyncio.Semaphore(0)

    async def generate(self, prompt: list[int], sampling: dict[str, Any], /) -> Answer:
        self.arrived.put_nowait(prompt)
        await self.free.acquire()
        return {"token_ids": [100], "logprobs": [-0.5], "finish_reason": "length"}


def given(sampler: Any) -> GivenEngine:
    return GivenEngine(sampler, model="policy", max_model_len=2048, logprob_kind="raw")


async def test_the_split_of_a_request_counts_over_an_engine_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "LIMITS", {"train": 2, "eval": 1})
    patient = Patient()
    managed = ManagedServer(given(patient), tokenizer=fast())
    first, second = (asyncio.ensure_future(managed.completion(prompt=f"Eval {n}", split="eval")) for n in range(2))
    arrived = [await patient.arrived.get()]
    training = asyncio.ensure_future(managed.completion(prompt="Train"))
    arrived.append(await patient.arrived.get())
    patient.free.release()
    await first
    arrived.append(await patient.arrived.get())
    gateway, _ = await managed.opened()
    texts = [gateway.renderer.tokenizer.decode(prompt) for prompt in arrived]
    assert texts == ["Eval 0", "Train", "Eval 1"]  # one call for evaluation at once, and training does not wait for it
    for _ in range(2):
        patient.free.release()
    await asyncio.gather(second, training)
    assert len(managed.current_nodes) == 3


async def test_only_what_was_asked_for_is_sent() -> None:
    server = Server("Hello there", "Hello there")
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED])
    await managed.chat_completion(messages=[ASKED], max_tokens=64, temperature=0.7, top_k=40, stop="\n\n", seed=3)
    always = {"input_ids", "prompt", "model", "n", "split", "temperature", "stop_token_ids"}
    assert set(server.calls[0]) == always
    assert set(server.calls[1]) == {*always, "max_tokens", "top_k", "stop", "seed"}
    assert server.known.added["<|im_end|>"] in server.calls[1]["stop_token_ids"]
    assert server.calls[1] | {"max_tokens": 64, "temperature": 0.7, "top_k": 40, "seed": 3} == server.calls[1]


async def test_what_is_asked_beside_counts_and_a_stream_is_the_clients() -> None:
    server = Server("Hello there")
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED], extra_body={"min_p": 0.25}, tools=None)
    assert server.calls[0]["min_p"] == 0.25
    with pytest.raises(CallerError, match="its ManagedClient streams"):
        await managed.chat_completion(messages=[ASKED], stream=True)


async def test_a_server_that_was_sent_another_prompt_is_not_believed() -> None:
    server = Server("Hello there")

    async def with_its_own_bos(**fields: Any) -> Any:
        prompt, *said = await Server.tokens_and_logprobs_completion(server, **fields)
        return prompt[1:], *said

    server.tokens_and_logprobs_completion = with_its_own_bos  # type: ignore[method-assign]
    managed = ManagedServer(server)
    with pytest.raises(openai.InternalServerError, match="names another"):
        await managed.chat_completion(messages=[ASKED])
    assert managed.current_nodes == []


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, "answered None"),
        (([], [[1]], [[-0.1]], None), "answered"),
        (([0], [[1]], [[-0.1]], ["stop"]), "names another"),
    ],
)
async def test_an_answer_that_is_none_is_an_error(answer: Any, complaint: str) -> None:
    async def answering(**fields: Any) -> Any:
        return answer

    server = SimpleNamespace(tokens_and_logprobs_completion=answering, tokenizer=fast())
    with pytest.raises(openai.InternalServerError, match=complaint):
        await ManagedServer(server).completion(prompt="Hello")


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        (([[1]], [[-0.1]], []), "1 choices"),
        (([[1], [2]], [[-0.1], [-0.1]], ["stop", "stop"]), "1 choices"),
        (([[1]], [[-0.1]], [None]), "ended a choice with None"),
        (([[1]], [[0.5]], ["stop"]), "positive"),
    ],
)
async def test_choices_that_were_not_asked_for_or_do_not_end_are_an_error(columns: Any, complaint: str) -> None:
    async def answering(**fields: Any) -> Any:
        return fields["input_ids"], *columns

    server = SimpleNamespace(tokens_and_logprobs_completion=answering, tokenizer=fast())
    managed = ManagedServer(server)
    with pytest.raises(openai.InternalServerError, match=complaint):
        await managed.completion(prompt="Hello")
    assert managed.current_nodes == []


async def test_a_server_that_fails_is_named_and_leaves_nothing() -> None:
    async def failing(**fields: Any) -> Any:
        raise NotImplementedError("Tokens and logprobs not supported")

    managed = ManagedServer(SimpleNamespace(tokens_and_logprobs_completion=failing, tokenizer=fast()))
    with pytest.raises(openai.InternalServerError, match="NotImplementedError: Tokens and logprobs not supported"):
        await managed.chat_completion(messages=[ASKED])
    assert managed.get_state() == {"nodes": []}


async def test_a_reset_forgets_and_goes_on() -> None:
    server = Server("Hello there", "And again", "Once more")
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED])
    gateway, first = await managed.opened()
    managed.reset()
    assert managed.current_nodes == []
    await managed.chat_completion(messages=[ASKED])
    _, second = await managed.opened()
    assert (len(managed.current_nodes), first.id == second.id) == (1, False)
    await asyncio.gather(*leaving.LEAVING)
    assert sessions_of(gateway) == [second.id]
    check(managed, server)


def sessions_of(gateway: Gateway) -> list[str]:
    return [facts.id for facts in gateway._at_desk().registry.all_facts()]


async def test_a_session_ends_with_the_last_who_holds_its_server() -> None:
    managed = ManagedServer(Server("Hello there"))
    await managed.chat_completion(messages=[ASKED])
    gateway, _ = await managed.opened()
    assert len(sessions_of(gateway)) == 1
    del managed
    gc.collect()
    await asyncio.sleep(0)
    await asyncio.gather(*leaving.LEAVING)
    assert sessions_of(gateway) == []


async def test_rollouts_over_one_server_share_a_gateway_and_nothing_else() -> None:
    server = Server("Hello there", "Hello there")
    one, two = ManagedServer(server), ManagedServer(server)
    await asyncio.gather(one.chat_completion(messages=[ASKED]), two.chat_completion(messages=[ASKED]))
    (gateway, first), (same, second) = await one.opened(), await two.opened()
    assert gateway is same
    assert first.id != second.id
    assert (len(one.current_nodes), len(two.current_nodes)) == (1, 1)


async def test_the_context_manager_takes_a_manager_and_the_server_with_the_most_room() -> None:
    ill, busy, idle = Server(), Server(), Server("Hello there")
    for server, healthy, room in ((ill, False, 9), (busy, True, 1), (idle, True, 5)):
        server.__dict__.update(server_healthy=healthy, sem=SimpleNamespace(_value=room))
    manager = SimpleNamespace(servers=[ill, busy, idle], tool_parser=None)
    async with managed_server(manager, tokenizer=idle.tokenizer) as managed:
        await managed.chat_completion(messages=[ASKED])
        nodes = managed.get_state()["nodes"]
    assert [node.tokens for node in nodes] == [idle.path(0)]
    assert managed.get_state()["nodes"] == []
    with pytest.raises(ConfigError, match="none of the 3 servers is at http://elsewhere"):
        async with managed_server(manager, base_url="http://elsewhere"):
            pass


async def test_an_engine_of_ours_by_its_name() -> None:
    managed = ManagedServer("scripted=")
    answer = await managed.chat_completion(messages=[ASKED], max_tokens=8)
    assert answer.choices[0].message.content
    [node] = managed.current_nodes
    assert len(trained(node)) == answer.usage.completion_tokens if answer.usage else False


async def test_a_gateway_of_the_callers_keeps_its_record() -> None:
    async with Gateway(engine="scripted=") as gateway:
        managed = ManagedServer(gateway)
        await managed.chat_completion(messages=[ASKED], max_tokens=8)
        _, session = await managed.opened()
        managed.reset()
        assert len(session.samples()) == 1
        assert session.samples()[0].status == "completed"


def test_gateways_end_with_their_loop() -> None:
    class Closing(GivenEngine):
        closed = False

        async def close(self) -> None:
            Closing.closed = True

    class Prompt:
        async def generate(self, prompt: list[int], sampling: dict[str, Any], /) -> Answer:
            return {"token_ids": [100], "logprobs": [-0.5], "finish_reason": "length"}

    async def rollout() -> None:
        engine = Closing(Prompt(), model="policy", max_model_len=2048, logprob_kind="raw")
        await ManagedServer(engine, tokenizer=fast()).completion(prompt="Hello")

    asyncio.run(rollout())
    assert Closing.closed
    assert backend._SHARED == {}


async def test_a_start_that_failed_is_tried_again() -> None:
    class Late(GivenEngine):
        ready = False

        async def start(self) -> EngineInfo:
            if not self.ready:
                raise ConfigError("not yet")
            return await super().start()

    patient = Patient()
    late = Late(patient, model="policy", max_model_len=2048, logprob_kind="raw")
    managed = ManagedServer(late, tokenizer=fast())
    with pytest.raises(ConfigError, match="not yet"):
        await managed.opened()
    late.ready = True
    await managed.opened()


def test_what_can_sample_nothing_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="int is neither an Atropos server, an engine, a gateway, nor KIND=WHERE"):
        ManagedServer(3)


async def test_a_server_without_a_tokenizer_is_asked_for_one() -> None:
    server = Server("Hello there")
    del server.tokenizer
    server.config.model_name = "none"
    with pytest.raises(ConfigError, match="names no tokenizer"):
        await ManagedServer(server).chat_completion(messages=[ASKED])


async def test_a_server_may_name_its_tokenizer() -> None:
    server = Server("Hello there")
    del server.tokenizer
    server.config.tokenizer_name = SMOLLM2.name
    managed = ManagedServer(server)
    await managed.chat_completion(messages=[ASKED])
    check(managed, server)
