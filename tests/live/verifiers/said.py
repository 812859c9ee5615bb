"""What a call was, to the last bit: for comparing what verifiers keeps, what we keep, and what the engine logged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np

from stenograph.engine.log import LoggedCall
from stenograph.render.tokenizer import Tokenizer

Said: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], bytes]
"""A prompt, what was sampled behind it, and at which logprobs."""


def said(prompt: Iterable[int], sampled: Iterable[int], logprobs: Iterable[float]) -> Said:
    return tuple(prompt), tuple(sampled), exact(logprobs)


def exact(logprobs: Iterable[float]) -> bytes:
    """As they are recorded."""
    return np.array(list(logprobs), np.float32).tobytes()


def logged(calls: Iterable[LoggedCall]) -> Iterator[Said]:
    """By the engine, of calls with one choice."""
    for call in calls:
        (choice,) = call.choices
        yield said(call.prompt, choice.ids, choice.logprobs)


def require_odd_spelling(family: Path, replies: Iterable[Iterable[int]]) -> None:
    """Nobody who encodes their texts finds these ids: else the comparison shows nothing."""
    tokenizer = Tokenizer((family / "tokenizer.json").read_text())
    for ids in map(list, replies):
        assert tokenizer.encode(tokenizer.decode(ids)) != ids
