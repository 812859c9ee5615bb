from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stenograph.engine.given import GivenEngine
from stenograph.errors import CallerError, EngineError, EvidenceError
from stenograph.integrations.openrlhf.llm_engine import (
    MAX_TOP_LOGPROBS,
    SUPPORTS,
    TrainersEngine,
    defaults_of,
    logprob_kind,
)
from tests.engine.streams import request
from tests.integrations.openrlhf.trainer import LlmEngine, wanted
from tests.live.openrlhf.stubs.vllm import SamplingParams


class Answers:
    """An engine that says just this."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)
        self.params: list[SamplingParams] = []

    async def generate(self, prompt: list[int], params: SamplingParams, multi_modal_data: None = None) -> Any:
        self.params.append(params)
        return SimpleNamespace(outputs=self.outputs) if self.outputs else None


def output(ids: list[int], rows: list[dict[int, float]] | None, finish: str = "stop") -> Any:
    told = None if rows is None else [{id: SimpleNamespace(logprob=one) for id, one in row.items()} for row in rows]
    return SimpleNamespace(token_ids=ids, logprobs=told, finish_reason=finish, stop_reason=None)


async def sampled(engine: Answers, *, top_logprobs: int = 0, **sampling: Any) -> list[Any]:
    given = GivenEngine(
        TrainersEngine(engine, SamplingParams),
        model="policy",
        max_model_len=64,
        logprob_kind="processed",
        supports=SUPPORTS,
        max_top_logprobs=MAX_TOP_LOGPROBS,
    )
    return [delta async for delta in given.generate(request([1, 2], top=top_logprobs, **sampling))]


async def test_ids_and_the_logprob_of_each() -> None:
    (delta,) = await sampled(Answers(output([5, 6], [{5: -0.5, 9: -0.25}, {6: -1.0}])))
    assert (delta.ids.tolist(), delta.logprobs.tolist(), delta.top) == ([5, 6], [-0.5, -1.0], None)


async def test_alternatives_where_they_are_asked_for() -> None:
    (delta,) = await sampled(Answers(output([5], [{5: -0.5, 9: -0.25}])), top_logprobs=1)
    assert [(one.token_id, one.logprob) for one in delta.top[0]] == [(9, -0.25)]


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (None, "2 token ids came with 0 logprobs"),
        ([{5: -0.5}], "2 token ids came with 1 logprobs"),
        ([{5: -0.5}, {6: -0.5}, {7: -0.5}], "2 token ids came with 3 logprobs"),
        ([{5: -0.5}, {7: -0.5}], "its logprob is missing"),
    ],
)
async def test_a_logprob_that_is_missing_is_never_made_up(rows: Any, fault: str) -> None:
    with pytest.raises(EvidenceError, match=fault):
        await sampled(Answers(output([5, 6], rows)))


async def test_an_engine_that_says_nothing() -> None:
    with pytest.raises(EngineError, match="did not answer with one output"):
        await sampled(Answers())


async def test_every_parameter_is_written_out_in_vllms_own_words() -> None:
    engine = Answers(output([5], [{5: -0.5}]))
    await sampled(engine, temperature=0.5, stop=("x",), stop_token_ids=(2,), logit_bias={7: 1.0}, seed=3)
    await sampled(engine, top_k=4)
    first, second = engine.params
    usual: dict[str, Any] = {
        "n": 1,
        "max_tokens": 8,
        "logprobs": 1,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
    }
    said: dict[str, Any] = {
        "temperature": 0.5,
        "top_k": -1,
        "stop": ["x"],
        "stop_token_ids": [2],
        "logit_bias": {7: 1.0},
        "seed": 3,
    }
    assert first == SamplingParams(**usual, **said)
    assert second == SamplingParams(**usual, top_k=4)


async def test_what_vllm_would_alter_silently_is_refused() -> None:
    with pytest.raises(CallerError, match="no temperature between 0 and"):
        await sampled(Answers(), temperature=0.001)


def test_the_trainers_sampling_as_a_sessions_defaults() -> None:
    told = defaults_of(wanted(stop=["x"]))
    assert (told["temperature"], told["top_k"], told["min_tokens"], told["stop"]) == (0.75, -1, 1, ["x"])
    assert not {"max_tokens", "seed", "stop_token_ids", "logit_bias", "logprobs"} & told.keys()


def test_the_kind_of_logprobs_is_what_vllm_was_started_with() -> None:
    assert logprob_kind(LlmEngine()) == "processed"
    assert logprob_kind(LlmEngine(logprobs_mode=None)) == "raw"
    assert logprob_kind(object()) == "raw"
