from __future__ import annotations

import asyncio
import logging
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import numpy as np
import pytest

from stenograph.engine.script import Script
from stenograph.errors import ConfigError
from stenograph.integrations.openrlhf.episode import SessionId
from stenograph.store.sqlite import SqliteReader
from tests.integrations.openrlhf.trainer import HfTokenizer, LlmEngine, Player, asks_once, rollouts, wanted


@pytest.fixture
async def closing() -> AsyncIterator[list[Player]]:
    """Players whose places are closed at the end: in a trainer they end with its process."""
    players: list[Player] = []
    yield players
    for player in players:
        for opened in player._places()._open.values():
            await (await opened).close()


async def test_a_rollout_is_what_the_engine_said(closing: list[Player]) -> None:
    async def two_turns(player: Player, prompt: str, session_id: SessionId) -> dict[str, Any]:
        answer = await player.ask(prompt)
        await player.ask(prompt, answer.choices[0].message.content.strip(), "And now?")
        return {"reward": 2, "scores": 0.5}

    engine = LlmEngine()
    closing.append(player := Player(two_turns))
    (told,) = await rollouts(player, engine)
    assert {"prompt": told["prompt"], "label": told["label"]} == {"prompt": "What is it like?", "label": "rain"}
    assert (told["reward"], told["scores"], told["truncated"]) == (2.0, 0.5, False)
    tokens, logprobs = told["observation_tokens"], told["rollout_log_probs"]
    assert len(tokens) == len(logprobs)
    for (start, end), call in zip(told["action_ranges"], engine.calls, strict=True):
        assert tokens[:start] == call.prompt
        assert tokens[start:end] == list(call.choices[0].ids)
        assert logprobs[start:end] == np.array(call.choices[0].logprobs, np.float32).tolist()


async def test_siblings_share_neither_params_nor_sessions(closing: list[Player]) -> None:
    async def changes(player: Player, prompt: str, session_id: SessionId) -> dict[str, Any]:
        assert player.sampling_params.temperature == 0.75
        player.sampling_params.temperature = 0.25
        await asyncio.sleep(0)
        await player.ask(f"{prompt} {session_id}", temperature=player.sampling_params.temperature)
        return {"reward": 1.0}

    params = wanted()
    engine = LlmEngine()
    closing.append(player := Player(changes))
    told = await rollouts(player, engine, 4, sampling_params=params)
    assert params == wanted()
    assert len({tuple(one["observation_tokens"]) for one in told}) == 4
    assert [call.sampling["temperature"] for call in engine.calls] == [0.25] * 4
    assert [one["extra_logs"]["stenograph_own_sampling"] for one in told] == [1.0] * 4


async def test_the_trainers_sampling_holds_where_the_agent_says_nothing(closing: list[Player]) -> None:
    engine = LlmEngine()
    closing.append(player := Player(asks_once))
    (told,) = await rollouts(player, engine, sampling_params=wanted(top_p=0.5, max_tokens=3, logprobs=None))
    (call,) = engine.calls
    assert {name: call.sampling[name] for name in ("temperature", "top_p", "max_tokens", "min_tokens")} == {
        "temperature": 0.75,
        "top_p": 0.5,
        "max_tokens": 3,
        "min_tokens": 1,
    }
    assert told["rollout_log_probs"] is None  # the trainer did not ask, and makes no use of them
    assert told["extra_logs"]["stenograph_own_sampling"] == 0.0


async def test_one_gateway_for_an_engine_a_tokenizer_and_a_length(closing: list[Player]) -> None:
    engine, other = LlmEngine(), LlmEngine()
    closing.append(player := Player(asks_once))
    await rollouts(player, engine, 3)
    await rollouts(player, engine, hf_tokenizer=HfTokenizer())  # Ray brings a new copy with each prompt
    assert len(player._places()._open) == 1
    await rollouts(player, engine, max_length=128)
    await rollouts(player, other)
    assert len(player._places()._open) == 3


async def test_a_session_is_let_go_where_no_store_keeps_it(closing: list[Player]) -> None:
    closing.append(player := Player(asks_once))
    await rollouts(player, LlmEngine(), 2)
    (opened,) = player._places()._open.values()
    place = await opened
    assert list(place.gateway._at_desk().registry.all_facts()) == []


async def test_a_session_stays_where_a_store_keeps_it(tmp_path: Any, closing: list[Player]) -> None:
    class Stored(Player):
        gateway_settings = {"store": tmp_path}  # noqa: RUF012
        extra_log_defaults = {"steps": 0.0}  # noqa: RUF012

    async def fails(player: Player, prompt: str, session_id: SessionId) -> dict[str, Any]:
        await player.ask(prompt)
        if player.sampling_params.temperature == 0.5:
            raise ValueError("the environment is broken")
        return {"reward": 1.0, "scores": 3.0, "extra_logs": {"steps": 7}}

    player, engine = Stored(fails), LlmEngine()
    closing.append(player)
    await rollouts(player, engine)
    await rollouts(player, engine, sampling_params=wanted(temperature=0.5))
    (opened,) = player._places()._open.values()
    await (await opened).close()
    with SqliteReader(tmp_path) as reader:
        whole, broken = reader.facts()
    assert (whole.state, whole.reward, whole.scores) == ("completed", 1.0, {"scores": 3.0, "steps": 7.0})
    assert whole.metadata == {"prompt": "What is it like?", "label": "rain"}
    assert (broken.state, broken.reward, broken.error) == ("failed", None, "ValueError: the environment is broken")
    closing.clear()


async def test_an_agent_that_takes_too_long(closing: list[Player]) -> None:
    class Hurried(Player):
        episode_seconds = 0.01

    async def waits(player: Player, prompt: str, session_id: SessionId) -> None:
        await asyncio.Event().wait()

    closing.append(player := Hurried(waits))
    (told,) = await rollouts(player, LlmEngine())
    assert told["extra_logs"]["stenograph_failed_timeout"] == 1.0
    assert (told["action_ranges"], told["reward"]) == ([], 0.0)
    assert len(told["observation_tokens"]) >= 2


async def test_an_agent_that_cancels_what_it_waits_for(closing: list[Player]) -> None:
    async def cancels(player: Player, prompt: str, session_id: SessionId) -> None:
        own = asyncio.ensure_future(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(own.cancel)
        await own

    closing.append(player := Player(cancels))
    (told,) = await rollouts(player, LlmEngine())
    assert told["extra_logs"]["stenograph_failed_agent_error"] == 1.0


async def test_an_agent_that_ends_its_program(closing: list[Player]) -> None:
    """One that was a program of its own, and calls `sys.exit`; a panic of Rust's is no `Exception` either."""

    class Panic(BaseException): ...

    for error in (SystemExit(1), Panic("index out of bounds")):

        async def leaves(player: Player, prompt: str, session_id: SessionId, error: BaseException = error) -> None:
            await player.ask(prompt)
            raise error

        closing.append(player := Player(leaves))
        told = await rollouts(player, LlmEngine(), 2)
        assert [one["extra_logs"]["stenograph_failed_agent_error"] for one in told] == [1.0, 1.0]
        assert [one["action_ranges"] for one in told] == [[], []]


@pytest.mark.parametrize(("method", "path"), [("POST", "/finish"), ("DELETE", "")])
async def test_an_agent_that_ends_its_session_itself(closing: list[Player], method: str, path: str) -> None:
    def called(session_id: SessionId) -> None:
        server = session_id.anthropic_base_url.removesuffix(f"/s/{session_id}")
        body = msgspec.json.encode({"status": "failed"}) if path else None
        key = {"authorization": f"Bearer {session_id.api_key}"}
        request = urllib.request.Request(f"{server}/sessions/{session_id}{path}", body, key, method=method)
        urllib.request.urlopen(request, timeout=30).close()

    async def ends(player: Player, prompt: str, session_id: SessionId) -> dict[str, Any]:
        await player.ask(prompt)
        await asyncio.to_thread(called, session_id)
        return {"reward": 1.0}

    closing.append(player := Player(ends))
    engine = LlmEngine()
    (told,) = await rollouts(player, engine)
    assert told["reward"] == 1.0
    [(start, end)] = told["action_ranges"]
    assert told["observation_tokens"][start:end] == list(engine.calls[0].choices[0].ids)


async def test_half_a_character_in_a_dataset_or_an_error(tmp_path: Any, closing: list[Player]) -> None:
    class Stored(Player):
        gateway_settings = {"store": tmp_path}  # noqa: RUF012

    async def breaks(player: Player, prompt: str, session_id: SessionId) -> None:
        raise ValueError("a broken \ud83d")

    half = "an apple \ud83d"
    for play in (asks_once, breaks):
        closing.append(player := Stored(play))
        (told,) = await rollouts(player, LlmEngine(), prompt=half, label=half)
        assert (told["prompt"], told["label"], told["action_ranges"]) == (half, half, [])
        assert told["extra_logs"]["stenograph_failed_agent_error"] == 1.0
        (opened,) = player._places()._open.values()
        await (await opened).close()
        closing.clear()


async def test_a_trainer_that_cancels_a_rollout(closing: list[Player]) -> None:
    waiting = asyncio.Event()

    async def waits(player: Player, prompt: str, session_id: SessionId) -> None:
        waiting.set()
        await asyncio.Event().wait()

    closing.append(player := Player(waits))
    playing = asyncio.ensure_future(rollouts(player, LlmEngine()))
    await waiting.wait()
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    (opened,) = player._places()._open.values()
    assert list((await opened).gateway._at_desk().registry.all_facts()) == []


async def test_a_prompt_that_is_templated_already(closing: list[Player]) -> None:
    """As a message it would be templated twice; as a text it is what it is."""

    async def as_text(player: Player, prompt: str, session_id: SessionId) -> dict[str, Any]:
        await player.client.completions.create(model=player.model_name, prompt=prompt, max_tokens=4)
        return {"reward": 1.0}

    question = [{"role": "user", "content": "What is it like?"}]
    templated = HfTokenizer().apply_chat_template(question, tokenize=False, add_generation_prompt=True)
    reasons = []
    for play in (asks_once, as_text):
        closing.append(player := Player(play))
        (told,) = await rollouts(player, LlmEngine(), prompt=templated)
        reasons.append(told["extra_logs"]["stenograph_failed_templated_twice"])
    assert reasons == [1.0, 0.0]


async def test_the_branch_that_the_agent_began_is_returned_and_the_rest_is_counted(closing: list[Player]) -> None:
    async def branches(player: Player, prompt: str, session_id: SessionId) -> dict[str, Any]:
        first = await player.ask(prompt, max_tokens=3)
        aside = await player.ask("Something else.", max_tokens=5)
        assert aside.usage.completion_tokens <= 5
        await player.ask(prompt, first.choices[0].message.content, "And now?", max_tokens=2)
        return {"reward": 1.0}

    engine = LlmEngine(Script(longest=40))
    closing.append(player := Player(branches))
    (told,) = await rollouts(player, engine)
    first, aside, last = engine.calls
    assert told["observation_tokens"] == [*last.prompt, *last.choices[0].ids]
    assert [end - start for start, end in told["action_ranges"]] == [len(one.choices[0].ids) for one in (first, last)]
    logs = {name.removeprefix("stenograph_"): value for name, value in told["extra_logs"].items() if value}
    assert logs == {"branches": 2.0, "turns": 3.0, "left_out_tokens": float(len(aside.choices[0].ids))}
    assert told["truncated"] is True


async def test_images_are_refused_before_the_agent_is_asked(closing: list[Player]) -> None:
    async def never(player: Player, prompt: str, session_id: SessionId) -> None:
        raise AssertionError

    closing.append(player := Player(never))
    (told,) = await rollouts(player, LlmEngine(), images=["cat.png"])
    assert told["extra_logs"]["stenograph_failed_images"] == 1.0
    assert told["observation_tokens"] == HfTokenizer()("What is it like?", add_special_tokens=False)["input_ids"]


async def test_what_was_sampled_before_the_agent_failed_is_masked(
    closing: list[Player], caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(player: Player, prompt: str, session_id: SessionId) -> None:
        await player.ask(prompt)
        raise KeyError("broken")

    closing.append(player := Player(breaks))
    engine = LlmEngine()
    with caplog.at_level(logging.WARNING, "stenograph"):
        (told,) = await rollouts(player, engine)
    assert told["observation_tokens"][: len(engine.calls[0].prompt)] == engine.calls[0].prompt
    assert (told["action_ranges"], set(told["rollout_log_probs"])) == ([], {0.0})
    assert "is not trained, agent_error: KeyError: 'broken'" in caplog.text


async def test_a_port_for_who_has_no_client_of_ours(closing: list[Player]) -> None:
    def fetched(url: str, key: str) -> bytes:
        request = urllib.request.Request(f"{url}/models", headers={"authorization": f"Bearer {key}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            body: bytes = answer.read()
            return body

    async def outside(player: Player, prompt: str, session_id: SessionId) -> dict[str, Any]:
        assert session_id.base_url == f"{session_id.anthropic_base_url}/v1"
        assert b"held" in await asyncio.to_thread(lambda: fetched(session_id.base_url, session_id.api_key))
        return await asks_once(player, prompt, session_id)

    closing.append(player := Player(outside))
    told = await rollouts(player, LlmEngine(), 2)
    assert [one["reward"] for one in told] == [1.0, 1.0]


async def test_two_executors_at_once_each_with_a_port(closing: list[Player]) -> None:
    def asked(session_id: SessionId, prompt: str) -> None:
        body = msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": prompt}]})
        with urllib.request.urlopen(f"{session_id.base_url}/chat/completions", body, timeout=30) as answer:
            assert answer.headers["x-session-id"] == session_id

    async def outside(player: Player, prompt: str, session_id: SessionId) -> dict[str, Any]:
        await asyncio.to_thread(asked, session_id, prompt)
        return {"reward": 1.0}

    engines = [LlmEngine(), LlmEngine()]
    closing += [Player(outside), Player(outside)]
    told = await asyncio.gather(*(rollouts(player, engine, 3) for player, engine in zip(closing, engines, strict=True)))
    for engine, group in zip(engines, told, strict=True):
        said = sorted([*call.prompt, *call.choices[0].ids] for call in engine.calls)
        assert sorted(one["observation_tokens"] for one in group) == said


async def test_an_episodes_attributes_are_there_while_it_runs(closing: list[Player]) -> None:
    async def looks(player: Player, prompt: str, session_id: SessionId) -> dict[str, Any]:
        assert (player.model_name, player.max_length) == ("held", 256)
        assert isinstance(player.hf_tokenizer, HfTokenizer)
        return await asks_once(player, prompt, session_id)

    closing.append(player := Player(looks))
    assert not hasattr(player, "client")
    (told,) = await rollouts(player, LlmEngine())
    assert told["reward"] == 1.0
    with pytest.raises(AttributeError, match="max_length is an episode's own"):
        _ = player.max_length


async def test_a_tokenizer_without_a_template_ends_the_run(closing: list[Player]) -> None:
    """Each rollout would fail for it: better the first."""
    player = Player(asks_once)
    for _ in range(2):
        with pytest.raises(ConfigError, match="brings no chat template"):
            await rollouts(player, LlmEngine(), hf_tokenizer=HfTokenizer(None))


async def test_what_is_no_tokenizer_ends_the_run(closing: list[Player]) -> None:
    with pytest.raises(ConfigError, match="one of transformers' fast tokenizers"):
        await rollouts(Player(asks_once), LlmEngine(), hf_tokenizer=object())


async def test_logits_end_the_run(closing: list[Player]) -> None:
    with pytest.raises(ConfigError, match="logprobs_mode=raw_logits"):
        await rollouts(Player(asks_once), LlmEngine(Script(), logprobs_mode="raw_logits"))
