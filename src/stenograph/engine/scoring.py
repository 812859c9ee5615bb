"""What some engines can do besides: say how likely each token of a given sequence is. Teachers and `verify` ask that.

Scores are of the distribution as the model has it: before temperature, penalties and truncation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from stenograph.core import JSON, Ids, TopLogprob, Value
from stenograph.engine.evidence import best_first, delta_from
from stenograph.errors import EvidenceError


class Score(Value):
    """Of one token, given all before it."""

    logprob: float
    top: tuple[TopLogprob, ...]
    """What the model finds likeliest in its place, best first: as many as were asked for."""


Scored: TypeAlias = tuple[Score | None, ...]
"""One a token, in order. The first has nothing before it, and None."""


@runtime_checkable
class Scoring(Protocol):
    """An engine may meet this beside `Engine`."""

    async def score(self, ids: Ids, top_k: int) -> Scored:
        """`ids` are in the vocabulary and fit the context, which is the caller's to see to; `top_k` may be 0."""


def scored_from(
    label: str, ids: Sequence[int], logprobs: Sequence[JSON], tops: Sequence[Mapping[int, JSON]], top_k: int
) -> Scored:
    """Out of raw wire values, aligned with `ids`: what stands at position 0 is nobody's word and is not looked at."""
    if not ids:
        return ()
    if len(logprobs) != len(ids) or (top_k and len(tops) != len(ids)):
        raise EvidenceError(f"{label}: {len(ids)} tokens got {len(logprobs)} scores, {len(tops)} rows of alternatives")
    rows = [best_first(row, top_k) for row in tops[1:]] if top_k else None
    if rows and min(map(len, rows)) < top_k:
        raise EvidenceError(f"{label}: fewer than {top_k} alternatives for a token")
    proven = delta_from(choice=0, ids=list(ids[1:]), logprobs=list(logprobs[1:]), top=rows)
    tops_proven = proven.top or ((),) * (len(ids) - 1)
    scores = zip(proven.logprobs.tolist(), tops_proven, strict=True)
    return (None, *(Score(logprob, top) for logprob, top in scores))
