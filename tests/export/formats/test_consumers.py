"""Each format, loaded by the class of its consumer that it is for.

None of them is in the development set: each wants torch, and versions of its own of much else. What the formats have to
look like is held by `test_formats.py` on every machine; this runs where a consumer is installed beside us.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from stenograph.core import JSON, Sample
from stenograph.export.formats.table import FORMATS
from stenograph.export.sample import samples
from tests.export.formats.reading import rows
from tests.export.trees import FACTS, call, ids, part, turn

TREE = [turn(call("a")), turn(call("b", "a", context=ids(7, 8)), parts=[part(1), part(2)], finish="length")]
REWARDS = (1.0, 0.0)
SAMPLES = [
    sample
    for number, reward in enumerate(REWARDS)
    for sample in samples(
        msgspec.structs.replace(FACTS, id=f"s{number}", reward=reward, group="g", group_size=2, rewards={"a": 0.25}),
        TREE,
    )
]


def consumer(module: str, name: str) -> Any:
    """Of mypy's point of view these do not exist."""
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        pytest.skip(f"{module} is not installed here: {error} (listed, reviewed)")


def written(name: str) -> list[JSON]:
    return list(rows(b"".join(FORMATS[name].encode(SAMPLES))))


def trained(sample: Sample) -> list[float]:
    return [logprob for logprob, one in zip(sample.logprobs.tolist(), sample.mask, strict=True) if one]


def approximately(numbers: Any) -> Any:
    """They keep logprobs as float32, as the record does: equal but for how they are printed."""
    return pytest.approx(list(numbers), rel=1e-6)


def test_openrlhf() -> None:
    generator = consumer("openrlhf.trainer.ppo_utils.samples_generator", "SamplesGenerator")
    for row, sample in zip(written("openrlhf"), SAMPLES, strict=True):
        made = generator._process_response_into_experience(None, row, max_len=64)
        mask = made.action_mask[0].tolist()
        assert made.sequences[0].tolist() == sample.tokens.tolist()
        assert mask == sample.mask[1:].tolist()
        logprobs = [one for one, on in zip(made.rollout_log_probs[0].tolist(), mask, strict=True) if on]
        assert logprobs == approximately(trained(sample))
        assert (made.rewards.tolist(), made.truncated.tolist()) == ([sample.reward], [True])


def test_openrlhf_joins_them() -> None:
    generator = consumer("openrlhf.trainer.ppo_utils.samples_generator", "SamplesGenerator")
    experience = consumer("openrlhf.trainer.ppo_utils.experience", "Experience")
    made = [generator._process_response_into_experience(None, row, max_len=64) for row in written("openrlhf")]
    assert experience.concat_experiences(made, 0).rewards.tolist() == list(REWARDS)


def test_atropos() -> None:
    (row,) = written("atropos")
    made = consumer("atroposlib.api.server", "ScoredData")(**row)
    assert made.tokens == [sample.tokens.tolist() for sample in SAMPLES]
    assert [[one != -100 for one in labels] for labels in made.masks] == [sample.mask.tolist() for sample in SAMPLES]
    logprobs = [[one for one in column if one <= 0] for column in made.inference_logprobs]
    assert logprobs == [trained(sample) for sample in SAMPLES]
    assert (made.scores, made.generation_params) == (list(REWARDS), {"temperature": 1.0})


def test_verl() -> None:
    output = consumer("verl.experimental.agent_loop.agent_loop", "AgentLoopOutput")
    for row, sample in zip(written("verl"), SAMPLES, strict=True):
        made = output(**row).as_dict()
        assert [*made["prompts"].tolist(), *made["responses"].tolist()] == sample.tokens.tolist()
        assert made["response_mask"].tolist() == sample.mask[len(made["prompts"]) :].tolist()
        logprobs = made["rollout_log_probs"][made["response_mask"].bool()]
        assert logprobs.tolist() == approximately(trained(sample))
        assert made["rm_scores"].tolist()[-1] == sample.reward
        assert made["extra_fields"]["turn_scores"] == [0.25]


def test_tinker() -> None:
    datum = consumer("tinker.types._pydantic_types.datum", "Datum")
    for row, sample, advantage in zip(written("tinker"), SAMPLES, (0.5, -0.5), strict=True):
        made = datum.model_validate(row["datum"])
        columns = {name: column.to_numpy() for name, column in made.loss_fn_inputs.items()}
        assert made.model_input.to_ints() == sample.tokens[:-1].tolist()
        assert columns["target_tokens"].tolist() == sample.tokens[1:].tolist()
        assert columns["mask"].tolist() == sample.mask[1:].tolist()
        assert columns["logprobs"][columns["mask"] == 1].tolist() == approximately(trained(sample))
        assert set(columns["advantages"][columns["mask"] == 1].tolist()) == {advantage}


def test_skyrl() -> None:
    """Joined and checked by its own code, as its asynchronous trainer does with what its workers send."""
    join = consumer("skyrl.train.generators.utils", "concatenate_generator_outputs")
    identity = consumer("skyrl.train.generators.base", "TrajectoryID")
    outputs = written("skyrl")
    for output in outputs:
        output["trajectory_ids"] = [identity(**one) for one in output["trajectory_ids"]]
    made = join(outputs)
    halves = zip(made["prompt_token_ids"], made["response_ids"], strict=True)
    assert [prompt + response for prompt, response in halves] == [sample.tokens.tolist() for sample in SAMPLES]
    for mask, logprobs, sample in zip(made["loss_masks"], made["rollout_logprobs"], SAMPLES, strict=True):
        assert mask == sample.mask[-len(mask) :].tolist()
        assert [one for one, on in zip(logprobs, mask, strict=True) if on] == trained(sample)
    assert [sum(rewards) for rewards in made["rewards"]] == [reward + 0.25 for reward in REWARDS]


def test_trl() -> None:
    """The trainer's own code between a `rollout_func` and its tensors."""
    torch = pytest.importorskip("torch", reason="torch is not installed here (listed, reviewed)")
    trainer = consumer("trl", "GRPOTrainer")
    (row,) = written("trl")
    tokenizer = SimpleNamespace(batch_decode=lambda found, **_: ["" for _ in found], pad_token_id=0)
    stand_in = SimpleNamespace(
        rollout_func=lambda prompts, trainer: dict(row),
        model=SimpleNamespace(training=True),
        accelerator=SimpleNamespace(device=torch.device("cpu"), gather=lambda tensor: tensor),
        state=SimpleNamespace(num_input_tokens_seen=0, global_step=0),
        use_vllm=False,
        tools=None,
        eos_token_ids=[101],
        processing_class=tokenizer,
        _tokenizer=tokenizer,
        _metrics={"train": defaultdict(list)},
    )
    prompts, completions, mask, _, logprobs, extra, *_ = trainer._generate(stand_in, ["Go.", "Go."])
    halves = zip(prompts, completions, strict=True)
    assert [prompt + completion for prompt, completion in halves] == [sample.tokens.tolist() for sample in SAMPLES]
    for on, column, sample in zip(mask, logprobs, SAMPLES, strict=True):
        assert on == sample.mask[-len(on) :].tolist()
        assert [one for one, yes in zip(column, on, strict=True) if yes] == trained(sample)
    assert extra["reward"] == list(REWARDS)
