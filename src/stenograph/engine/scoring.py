"""What some engines can do besides: say how likely each token of a given sequence is. Teachers and `verify` ask that.

Scores are of the distribution as the model has it: before temperature, penalties and truncation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from stenograph.core import JSON, Ids, Logprobs, Value
from stenograph.engine.evidence import best_first, delta_from
from stenograph.errors import EvidenceError

FIRST = 1
"""The first position that can have a score: what stands at 0 has nothing before it."""


class Scored(Value):
    """Of the tokens from `start` on, each given all before it."""

    start: int
    logprobs: Logprobs
    """Of the tokens themselves."""
    top_ids: Ids
    """`[token][k]`: what the model finds likeliest in its place, best first; as many as were asked for."""
    top_logprobs: Logprobs
    cached_tokens: int | None = None
    """How many of the sequence's tokens the engine did not have to compute again, where it says so."""

    def __post_init__(self) -> None:
        if self.start < FIRST:
            raise ValueError(f"a score at position {self.start}")
        if self.top_ids.shape != self.top_logprobs.shape or self.top_ids.shape[:1] != self.logprobs.shape:
            shapes = [self.logprobs.shape, self.top_ids.shape, self.top_logprobs.shape]
            raise ValueError(f"scores, ids and logprobs of alternatives differ in shape: {shapes}")


@runtime_checkable
class Scoring(Protocol):
    """An engine may meet this beside `Engine`."""

    async def score(self, ids: Ids, top_k: int, start: int = FIRST) -> Scored:
        """`ids` are in the vocabulary and fit the context, which is the caller's to see to; `top_k` may be 0. Scores
        are of the positions from `start` on: what is before it need not be computed again, if the engine has it."""


def scored_from(
    label: str,
    ids: Sequence[int],
    start: int,
    logprobs: Sequence[JSON],
    tops: Sequence[Mapping[int, JSON]],
    top_k: int,
    cached_tokens: int | None = None,
) -> Scored:
    """Out of raw wire values, aligned with `ids[start:]`."""
    scored = ids[start:]
    if len(logprobs) != len(scored) or (top_k and len(tops) != len(scored)):
        raise EvidenceError(f"{label}: {len(scored)} tokens got {len(logprobs)} scores, {len(tops)} rows beside them")
    rows = [best_first(row, top_k) for row in tops] if top_k else []
    if any(len(row) < top_k for row in rows):
        raise EvidenceError(f"{label}: fewer than {top_k} alternatives for a token")
    proven = delta_from(choice=0, ids=list(scored), logprobs=list(logprobs), top=rows if top_k else None)
    alternatives = proven.top or ((),) * len(scored)
    shape = (len(scored), top_k)
    return Scored(
        start=start,
        logprobs=proven.logprobs,
        top_ids=np.array([[one.token_id for one in row] for row in alternatives], np.int32).reshape(shape),
        top_logprobs=np.array([[one.logprob for one in row] for row in alternatives], np.float32).reshape(shape),
        cached_tokens=cached_tokens,
    )
