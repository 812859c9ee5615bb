"""An engine that a trainer holds: what it may hand over, and which ids its model has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stenograph import Gateway
from stenograph.engine.given import Answer, GivenEngine
from stenograph.errors import EngineError
from tests.demo.acted import needs_model
from tests.engine.streams import ids, logprobs, proven, request

SMOLLM2 = 49152
"""Tokens in its vocabulary."""


class Saying:
    """The same, whatever it is asked."""

    def __init__(self, token_ids: Any, logprobs: Any) -> None:
        self.prompts: list[list[int]] = []
        self._answer = Answer(token_ids=token_ids, logprobs=logprobs, finish_reason="stop")

    async def generate(self, prompt: list[int], sampling: dict[str, Any]) -> Answer:
        self.prompts.append(prompt)
        return self._answer


def given(sampler: Saying, vocab_size: int | None = None) -> GivenEngine:
    return GivenEngine(sampler, model="policy", max_model_len=4096, logprob_kind="raw", vocab_size=vocab_size)


@pytest.mark.parametrize(
    ("token_ids", "told"),
    [
        ([5, 6], [-0.5, 0.0]),
        (np.array([5, 6]), np.array([-0.5, 0.0], np.float32)),
        ([np.int64(5), np.int32(6)], [np.float32(-0.5), np.float64(0.0)]),
        ((5, 6), (-0.5, 0)),
    ],
)
async def test_numbers_may_be_numpys(token_ids: Any, told: Any) -> None:
    asked = request()
    deltas = await proven(given(Saying(token_ids, told)).generate(asked), asked)
    assert (ids(deltas), logprobs(deltas)) == ([5, 6], [-0.5, 0.0])


@pytest.mark.parametrize(
    ("token_ids", "told"),
    [
        (np.array([5.0, 6.0]), np.array([-0.5, 0.0])),
        (np.array([5, 6]), np.array([-0.5, np.nan])),
        (np.array([5, 6]), np.array([-0.5])),
        (np.array([[5, 6]]), np.array([[-0.5, 0.0]])),
        (np.array(5), np.array(-0.5)),
        (np.array(["5", "6"]), [-0.5, 0.0]),
        (np.array([True, False]), [-0.5, 0.0]),
    ],
)
async def test_numpys_faults_are_faults(token_ids: Any, told: Any) -> None:
    asked = request()
    with pytest.raises(EngineError):
        await proven(given(Saying(token_ids, told)).generate(asked), asked)


async def talked(sampler: Saying, vocab_size: int | None, times: int) -> list[Any]:
    """The status of each turn of a conversation, and the samples at its end."""
    async with Gateway(engine=given(sampler, vocab_size), tokenizer="smollm2") as gateway:
        session = gateway.session()
        client = session.openai()
        messages: list[Any] = []
        for _ in range(times):
            messages.append({"role": "user", "content": "again"})
            answer = await client.chat.completions.create(model="policy", messages=messages)
            messages.append({"role": "assistant", "content": answer.choices[0].message.content})
        return session.samples()


@needs_model
async def test_a_models_padding_can_be_sampled_and_sent_again() -> None:
    """Most vocabularies have more rows than their tokenizer has tokens, and a young policy says them, too."""
    sampler = Saying([1780, SMOLLM2 + 3, 2], [-0.5, -9.0, -0.1])
    samples = await talked(sampler, SMOLLM2 + 64, 2)
    assert SMOLLM2 + 3 in sampler.prompts[1]
    assert [len(sample.spans) for sample in samples] == [2]


@needs_model
async def test_a_token_that_the_model_lacks_never_leaves() -> None:
    """A tokenizer may have been given more tokens than the model has rows."""
    import openai

    sampler = Saying([5], [-0.5])
    with pytest.raises(openai.BadRequestError, match="outside the vocabulary of 100"):
        await talked(sampler, 100, 1)
    assert not sampler.prompts
