"""A transformers model in this process: a small one, with random weights, in full precision and in half."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from stenograph.core import Delta, Finish, Request, VersionRun
from stenograph.errors import ConfigError, ContextLengthExceeded, EngineError, EngineUnavailable
from tests.engine.streams import END, finish, ids, logprobs, proven, request, small_tokenizer

MISSING = [name for name in ("torch", "transformers") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

SMALL = small_tokenizer()
CLOSE = SMALL.added[END]
CONTEXT = 128
GREEDY: dict[str, Any] = {"temperature": 0.0, "ignore_eos": True}


def model(dtype: str = "float32", seed: int = 0) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=SMALL.vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        initializer_range=0.4,
        eos_token_id=CLOSE,
        bos_token_id=None,
        pad_token_id=None,
    )
    return LlamaForCausalLM(config).to(getattr(torch, dtype))


def made(dtype: str = "float32") -> Any:
    from stenograph.engine.torch import TorchEngine

    return TorchEngine(model(dtype), SMALL, called="random", version="1")


@pytest.fixture
async def engine() -> AsyncIterator[Any]:
    one = made()
    await one.start()
    yield one
    await one.close()


async def said(engine: Any, asked: Request) -> list[Delta]:
    return await proven(engine.generate(asked), asked, SMALL.vocab_size)


async def test_it_says_what_it_is(engine: Any) -> None:
    info = await engine.start()
    assert (info.kind, info.logprob_kind, info.max_model_len) == ("torch", "raw", CONTEXT)
    assert info.vocab_size == SMALL.vocab_size


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-3), ("bfloat16", 0.05)])
async def test_what_was_sampled_in_a_crowd_scores_the_same_alone(dtype: str, tolerance: float) -> None:
    """Prompts of all lengths, coming in while others are under way: padding and joining change nothing."""
    engine = made(dtype)
    await engine.start()

    async def one(place: int) -> tuple[Request, list[Delta]]:
        await asyncio.sleep(place * 0.003)
        asked = request(range(3, 5 + 3 * place), n=1 + place % 3, id=f"r{place}", max_tokens=5 + 4 * place, top=2)
        return asked, await said(engine, asked)

    for asked, deltas in await asyncio.gather(*(one(place) for place in range(8))):
        for choice in range(asked.n):
            sampled = np.array(ids(deltas, choice), np.int32)
            scored = await engine.score(np.concatenate([asked.prompt, sampled]), 2)
            again = scored.logprobs[len(asked.prompt) - scored.start :]
            assert np.abs(again - logprobs(deltas, choice)).mean() < tolerance
            assert scored.start + len(scored.logprobs) == len(asked.prompt) + len(sampled)
    await engine.close()


async def test_scores_in_pieces_are_scores_at_once(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from stenograph.engine import torch_score as module

    whole = await engine.score(np.arange(100, dtype=np.int32), 3)
    monkeypatch.setattr(module, "AT_ONCE", 7)
    engine._scorer.forget()
    pieces = await engine.score(np.arange(100, dtype=np.int32), 3)
    assert pieces.cached_tokens == whole.cached_tokens == 0
    assert pieces.logprobs == pytest.approx(whole.logprobs, abs=1e-4)
    assert pieces.top_ids[:, 0].tolist() == whole.top_ids[:, 0].tolist()


@pytest.mark.parametrize("start", [1, 2, 30, 70, 99])
async def test_a_prefix_is_computed_once(engine: Any, start: int) -> None:
    """Where two sequences part, the second goes on; and what is scored is what would have been scored alone."""
    shared, tails = np.arange(50), (np.arange(50, 100), np.arange(60, 110))
    first, second = (np.concatenate([shared, tail]).astype(np.int32) for tail in tails)
    alone = await engine.score(second, 3)
    engine._scorer.forget()
    await engine.score(first, 3)
    scored = await engine.score(second, 3, start)
    assert scored.cached_tokens == min(start - 1, 50)
    assert scored.logprobs == pytest.approx(alone.logprobs[start - 1 :], abs=1e-4)
    assert scored.top_logprobs == pytest.approx(alone.top_logprobs[start - 1 :], abs=1e-4)
    assert scored.top_ids[:, 0].tolist() == alone.top_ids[start - 1 :, 0].tolist()


async def test_what_was_computed_under_other_weights_is_forgotten(engine: Any) -> None:
    sequence = np.arange(40, dtype=np.int32)
    before = await engine.score(sequence, 0)
    await engine.replace(model(seed=1).state_dict(), version="2")
    after = await engine.score(sequence, 0, 30)
    assert after.cached_tokens == 0
    assert np.abs(after.logprobs - before.logprobs[29:]).max() > 0.1


async def test_a_score_that_fails_leaves_nothing_behind(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sequence = np.arange(40, dtype=np.int32)
    good = await engine.score(sequence, 0)
    with monkeypatch.context() as broken:
        broken.setattr(engine._model, "forward", None)
        with pytest.raises(EngineError, match="torch-0 failed"):
            await engine.score(sequence[::-1].copy(), 0)
    assert (await engine.score(sequence, 0)).logprobs == pytest.approx(good.logprobs, abs=1e-4)


async def test_greedy_is_what_transformers_generates(engine: Any) -> None:
    import torch

    deltas = await said(engine, request(range(3, 20), max_tokens=20, **GREEDY))
    prompt = torch.arange(3, 20)[None]
    reference = model().generate(prompt, max_new_tokens=20, do_sample=False, eos_token_id=-1, pad_token_id=0)
    assert ids(deltas) == reference[0, 17:].tolist()


async def test_length_stop_id_stop_string_and_the_models_own_end(engine: Any) -> None:
    sampled = ids(await said(engine, request(max_tokens=9, **GREEDY)))
    assert len(sampled) == 9
    stopped = await said(engine, request(max_tokens=9, stop_token_ids=(sampled[4],), **GREEDY))
    count = sampled.index(sampled[4]) + 1
    assert (ids(stopped), finish(stopped)) == (sampled[:count], Finish("stop", sampled[4]))
    text = SMALL.encode("and")
    spoken = await said(
        engine, request(max_tokens=9, stop=("and",), logit_bias=dict.fromkeys(text, 100.0), min_tokens=0)
    )
    assert finish(spoken) in (Finish("stop", "and"), Finish("length"))
    ended = await said(engine, request(max_tokens=9, logit_bias={CLOSE: 100.0}))
    assert (ids(ended), finish(ended)) == ([CLOSE], Finish("stop", None))
    longer = await said(engine, request(max_tokens=9, min_tokens=3, logit_bias={CLOSE: 50.0}))
    assert len(ids(longer)) == 4


async def test_an_end_that_the_model_does_not_have_is_none() -> None:
    """Held off for `min_tokens` it would be an error, and that of every reply in the batch."""
    from stenograph.engine.torch import TorchEngine

    policy = model()
    policy.generation_config.eos_token_id = [CLOSE, 151643]
    engine = TorchEngine(policy, SMALL, called="random")
    await engine.start()
    assert len(ids(await said(engine, request(max_tokens=9, min_tokens=3, logit_bias={CLOSE: 50.0})))) == 4
    await engine.close()


async def test_the_context_is_a_length(engine: Any) -> None:
    deltas = await said(engine, request(range(100), max_tokens=999, ignore_eos=True))
    assert (len(ids(deltas)), finish(deltas)) == (CONTEXT - 100, Finish("length"))
    with pytest.raises(ContextLengthExceeded):
        await said(engine, request([5] * CONTEXT))


@pytest.mark.parametrize("asked", [{"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}])
async def test_truncation_leaves_the_best(engine: Any, asked: dict[str, Any]) -> None:
    best = ids(await said(engine, request(max_tokens=9, **GREEDY)))
    assert ids(await said(engine, request(max_tokens=9, ignore_eos=True, temperature=2.0, **asked))) == best


async def test_choices_of_one_seed_differ_and_can_be_had_again(engine: Any) -> None:
    asked = request(n=3, seed=5, max_tokens=12, ignore_eos=True)
    first, again = await said(engine, asked), await said(engine, asked)
    choices = [ids(first, choice) for choice in range(3)]
    assert len({tuple(choice) for choice in choices}) == 3
    assert choices == [ids(again, choice) for choice in range(3)]


async def test_weights_change_between_two_tokens_of_a_reply(engine: Any) -> None:
    """Before: what the old model says. From then on what the new one says of the whole path, nothing left over."""
    asked = request(range(3, 20), max_tokens=40, **GREEDY)
    deltas: list[Delta] = []
    async with aclosing(engine.generate(asked)) as arriving:
        deltas += [await anext(arriving) for _ in range(5)]
        assert await engine.hold()
        assert await engine.held()
        await engine.replace(model(seed=1).state_dict(), version="2")
        await engine.release()
        deltas += [one async for one in arriving]
    versions = [delta.versions for delta in deltas]
    changed = versions.index((VersionRun("2", 1),))
    assert versions == [(VersionRun("1", 1),)] * changed + [(VersionRun("2", 1),)] * (40 - changed)
    assert 5 <= changed < 40
    start = len(asked.prompt) + changed
    scored = await engine.score(np.concatenate([asked.prompt, np.array(ids(deltas), np.int32)]), 0)
    assert scored.logprobs[start - 1 :] == pytest.approx(logprobs(deltas)[changed:], abs=1e-3)


async def test_held_nothing_is_sampled(engine: Any) -> None:
    async with aclosing(engine.generate(request(max_tokens=40, ignore_eos=True))) as arriving:
        await anext(arriving)
        await engine.hold()
        rows = [len(row.ids) for row in engine._replies]
        await asyncio.sleep(0.05)
        assert [len(row.ids) for row in engine._replies] == rows
        await engine.release()
        assert len([one async for one in arriving]) == 39


async def test_closing_early_frees_its_place(engine: Any) -> None:
    async with aclosing(engine.generate(request(n=2, max_tokens=100, ignore_eos=True))) as arriving:
        await anext(arriving)
    assert not engine._replies
    assert len(ids(await said(engine, request(max_tokens=4, ignore_eos=True)))) == 4


async def test_a_step_that_fails_fails_its_replies_alone(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(engine._model, "forward", None)
        with pytest.raises(EngineError, match="torch-0 failed"):
            await said(engine, request())
    assert ids(await said(engine, request(max_tokens=2)))


async def test_a_token_that_cannot_be_reported_fails_and_hangs_nobody(engine: Any) -> None:
    """Weights that went out of bounds: every logit is NaN, and the best of them is still an id."""
    import torch

    with torch.no_grad():
        engine._model.model.norm.weight.fill_(torch.nan)
    with pytest.raises(EngineError, match="torch-0 failed"):
        async with asyncio.timeout(10):
            await said(engine, request(**GREEDY))


async def test_who_waits_when_it_is_closed_is_told(engine: Any) -> None:
    async with aclosing(engine.generate(request(max_tokens=100, ignore_eos=True))) as arriving:
        await anext(arriving)
        await engine.hold()
        await engine.close()
        with pytest.raises(EngineUnavailable):
            async with asyncio.timeout(10):
                _ = [one async for one in arriving]


async def test_with_somebody_always_under_way_nothing_piles_up(engine: Any) -> None:
    """What a row leaves behind on the left goes with it: here three replies at a time, of thirty."""
    places = asyncio.Semaphore(3)
    widths = []

    async def one(place: int) -> None:
        async with places:
            asked = request([5] * (3 + place % 4), id=f"r{place}", max_tokens=6 + place % 5, ignore_eos=True)
            async for _ in engine.generate(asked):
                widths.append(engine._batch._mask.shape[1])

    await asyncio.gather(*(one(place) for place in range(30)))
    assert max(widths) <= 17


@pytest.mark.parametrize("family", ["tied", "padded", "windowed", "gpt2", "experts"])
async def test_other_families_sample_in_a_crowd_as_one_plain_pass_reads(family: str) -> None:
    import torch

    from stenograph.engine.torch import TorchEngine

    policy = other(family)
    engine = TorchEngine(policy, SMALL, called=family)
    info = await engine.start()
    assert info.vocab_size == policy.config.vocab_size

    async def one(place: int) -> tuple[Request, list[Delta]]:
        await asyncio.sleep(place * 0.003)
        asked = request(range(3, 5 + 5 * place), id=f"r{place}", max_tokens=5 + 4 * place, top=2, ignore_eos=True)
        return asked, await proven(engine.generate(asked), asked, info.vocab_size or 0)

    for asked, deltas in await asyncio.gather(*(one(place) for place in range(6))):
        path = [*asked.prompt.tolist(), *ids(deltas)]
        with torch.inference_mode():
            odds = policy(input_ids=torch.tensor([path])).logits[0].log_softmax(-1)
        read = [float(odds[place - 1, path[place]]) for place in range(len(asked.prompt), len(path))]
        assert read == pytest.approx(logprobs(deltas), abs=1e-3)
    await engine.close()


def other(family: str) -> Any:
    """Heads that are tied, rows that no token needs, windows that slide, positions that are learned, experts."""
    import torch
    import transformers

    torch.manual_seed(0)
    ends = {"eos_token_id": CLOSE, "bos_token_id": None, "pad_token_id": None, "initializer_range": 0.4}
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"vocab_size": SMALL.vocab_size, "num_key_value_heads": 2, "max_position_embeddings": CONTEXT}
    match family:
        case "gpt2":
            config = transformers.GPT2Config(
                vocab_size=SMALL.vocab_size,
                n_embd=32,
                n_layer=2,
                n_head=4,
                n_positions=CONTEXT,
                **ends,
            )
        case "windowed":
            config = transformers.MistralConfig(**sizes, **ends, sliding_window=8)
        case "experts":
            config = transformers.MixtralConfig(**sizes, **ends, num_local_experts=4, num_experts_per_tok=2)
        case "padded":
            config = transformers.Qwen2Config(**(sizes | {"vocab_size": SMALL.vocab_size + 64}), **ends)
        case _:
            config = transformers.LlamaConfig(**sizes, **ends, tie_word_embeddings=True)
    return transformers.AutoModelForCausalLM.from_config(config)


async def test_a_model_that_cannot_be_batched_is_refused_at_the_start() -> None:
    import transformers

    from stenograph.engine.torch import TorchEngine

    state = transformers.MambaConfig(vocab_size=SMALL.vocab_size, hidden_size=16, num_hidden_layers=1, state_size=4)
    endless = transformers.BloomConfig(vocab_size=SMALL.vocab_size, hidden_size=16, n_layer=1, n_head=2)
    for config, words in ((state, "keeps a state"), (endless, "how long a context")):
        policy = transformers.AutoModelForCausalLM.from_config(config)
        with pytest.raises(ConfigError, match=words):
            await TorchEngine(policy, SMALL, called="random").start()


async def test_weights_of_another_model_change_nothing(engine: Any) -> None:
    """Half of them laid over the old ones would be a policy that nobody has, under the old version's name."""
    before = await engine.score(np.arange(20, dtype=np.int32), 0)
    other_weights = model(seed=1).state_dict()
    lacking = {name: tensor for name, tensor in other_weights.items() if "layers.1" not in name}
    for weights, words in (
        (lacking, "is missing"),
        (other_weights | {"module.x": other_weights["lm_head.weight"]}, "it has no module.x"),
        (other_weights | {"lm_head.weight": other_weights["lm_head.weight"][:-1]}, "in place of"),
    ):
        with pytest.raises(ConfigError, match=words):
            await engine.replace(weights, version="2")
    after = await engine.score(np.arange(20, dtype=np.int32), 0)
    assert after.logprobs.tolist() == before.logprobs.tolist()
    deltas = await said(engine, request(max_tokens=2, ignore_eos=True))
    assert {run.version for delta in deltas for run in delta.versions} == {"1"}


async def test_a_tied_head_need_not_be_brought_twice() -> None:
    from stenograph.engine.torch import TorchEngine

    engine = TorchEngine(other("tied"), SMALL, called="tied", version="1")
    await engine.start()
    await engine.replace(
        {name: tensor for name, tensor in other("tied").state_dict().items() if name != "lm_head.weight"}, version="2"
    )
    assert {run.version for delta in await said(engine, request()) for run in delta.versions} == {"2"}
    await engine.close()
