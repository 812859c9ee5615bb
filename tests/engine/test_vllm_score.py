"""vLLM's `prompt_logprobs`: string keys, k or k + 1 entries a position, null at the first."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

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
    scored = scores_of("vllm-0", IDS, 2, 1, answer())
    assert scored.logprobs.tolist() == [-7.5, -0.5]
    assert scored.top_ids.tolist() == [[29, 28], [198, 30]]
    assert scored.top_logprobs.tolist() == [[-0.75, -2.0], [-0.5, -2.5]]
    assert scored.cached_tokens is None


def test_scores_begin_where_they_are_wanted() -> None:
    scored = scores_of("vllm-0", IDS, 1, 2, answer())
    assert (scored.start, scored.logprobs.tolist(), scored.top_ids.tolist()) == (2, [-0.5], [[198]])


def test_what_the_cache_had_is_told_where_the_server_tells_it() -> None:
    told = msgspec.json.decode(answer()) | {"usage": {"prompt_tokens_details": {"cached_tokens": 2}}}
    assert scores_of("vllm-0", IDS, 0, 1, msgspec.json.encode(told)).cached_tokens == 2


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
        scores_of("vllm-0", IDS, 2, 1, said)


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
