"""Requests and streams, short enough to be read in a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import numpy as np
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from stenograph.core import Delta, Finish, Request, Sampling
from stenograph.engine.evidence import checked
from stenograph.render.tokenizer import Tokenizer

END = "<|im_end|>"
CORPUS = (
    "the answer is that looking at tokenization, because of this, we therefore find the answer and not a question",
    "she sells sea shells on the sea shore, and the shells that she sells are sea shells for sure",
    '{"name": "search", "arguments": {"query": "weather in Paris", "limit": 10}}',
)


def request(prompt: Sequence[int] = (1, 2, 3), *, n: int = 1, top: int = 0, id: str = "r1", **sampling: Any) -> Request:
    settings = Sampling(**({"max_tokens": 8} | sampling))
    return Request(id, "session", np.array(prompt, np.int32), settings, n=n, top_logprobs=top)


def delta(choice: int, ids: Sequence[int], logprobs: Sequence[float], finish: Finish | None = None) -> Delta:
    return Delta(choice, np.array(ids, np.int32), np.array(logprobs, np.float32), finish=finish)


async def stream(deltas: Iterable[Delta]) -> AsyncIterator[Delta]:
    for one in deltas:
        yield one


async def proven(deltas: AsyncIterator[Delta], asked: Request, vocab_size: int = 1024) -> list[Delta]:
    return [one async for one in checked(deltas, asked, vocab_size)]


def ids(deltas: Iterable[Delta], choice: int = 0) -> list[int]:
    return [id for one in deltas if one.choice == choice for id in one.ids.tolist()]


def logprobs(deltas: Iterable[Delta], choice: int = 0) -> list[float]:
    return [logprob for one in deltas if one.choice == choice for logprob in one.logprobs.tolist()]


def finish(deltas: Iterable[Delta], choice: int = 0) -> Finish | None:
    return next((one.finish for one in deltas if one.choice == choice and one.finish), None)


def small_tokenizer() -> Tokenizer:
    return Tokenizer(small_spec())


def small_spec() -> str:
    """Byte-level BPE in a few hundred tokens, with ChatML's markers."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|im_start|>", END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(CORPUS, trainer)
    inner.add_tokens([tokenizers.AddedToken(marker) for marker in ("<tool_call>", "</tool_call>")])
    spec: str = inner.to_str()
    return spec
