"""vLLM's `prompt_logprobs`: string keys, k or k + 1 entries a position, null at the first."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from stenograph.core import TopLogprob
from stenograph.engine.vllm import VllmEngine
from stenograph.engine.vllm_score import score_body, scores_of
from stenograph.errors import CallerError, ContextLengthExceeded, EngineUnavailable, EvidenceError
from tests.engine.servers import plain, saying

IDS = [1, 9690, 198]
ROWS: list[Any] = [
    None,
    {"9690": {"logprob": -7.5, "rank": 90}, "29": {"logprob": -0.75, "rank": 1}, "28": {"logprob": -2.0, "rank": 2}},
    {"198": {"logprob": -0.5, "rank": 1}, "30": {"logprob": -2.5, "rank": 2}},
]


def answer(rows: list[Any] = ROWS, ids: list[int] = IDS) -> bytes:
    return msgspec.json.encode({"choices": [{"index": 0, "prompt_token_ids": ids, "prompt_logprobs": rows}]})


def test_scores_are_aligned() -> None:
    none, first, second = scores_of("vllm-0", IDS, 2, answer())
    assert none is None
    assert first is not None
    assert second is not None
    assert (first.logprob, second.logprob) == (-7.5, -0.5)
    assert first.top == (TopLogprob(29, -0.75), TopLogprob(28, -2.0))
    assert second.top == (TopLogprob(198, -0.5), TopLogprob(30, -2.5))


@pytest.mark.parametrize(
    "said",
    [
        answer(ids=[1, 9690, 199]),
        answer(ROWS[:2]),
        answer([None, {"29": {"logprob": -0.75}, "28": {"logprob": -1.0}}, ROWS[2]]),
        answer([None, {"9690": {"logprob": 0.5}, "28": {"logprob": -1.0}}, ROWS[2]]),
        answer([None, ROWS[1], {"198": {"logprob": -0.5}}]),
        answer([None, ROWS[1], {"AI": {"logprob": -0.5}}]),
        answer([None, {**ROWS[1], "28": {"logprob": "-2"}}, ROWS[2]]),
        b'{"choices": []}',
        b"<html>",
    ],
)
def test_what_cannot_be_trusted_is_refused(said: bytes) -> None:
    with pytest.raises(EvidenceError):
        scores_of("vllm-0", IDS, 2, said)


def test_nothing_is_scored_by_hand() -> None:
    sent = msgspec.json.decode(score_body(IDS, 3, "policy"))
    assert (sent["prompt"], sent["prompt_logprobs"], sent["temperature"]) == (IDS, 3, 1.0)


async def test_a_refusal_is_the_engines() -> None:
    async with saying(plain("503 Away", b"")) as wire:
        vllm = VllmEngine(wire.url)
        with pytest.raises(EngineUnavailable):
            await vllm.score(np.array(IDS, np.int32), 0)
        await vllm.close()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("Token id 49200 is out of vocabulary", CallerError),
        ("This model's maximum context length is 4096 tokens.", ContextLengthExceeded),
    ],
)
async def test_a_sequence_that_it_refuses_is_no_failure_of_the_engine(words: str, error: type[Exception]) -> None:
    """Of one sample among many: whoever scores the others goes on, and nobody tries this one again."""
    refused = plain("400 Bad Request", msgspec.json.encode({"error": {"message": words, "code": 400}}))
    async with saying(refused) as wire:
        vllm = VllmEngine(wire.url, model="policy")
        with pytest.raises(error):
            await vllm.score(np.array(IDS, np.int32), 0)
        await vllm.close()
