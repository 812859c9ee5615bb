"""Samples beside an engine that scored them again: how far what was recorded is from what it says now. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stenograph.core import JSON, NEUTRAL, Logprobs, Sample, Span, Value
from stenograph.engine.scoring import Scored

SHAPING = ("presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "min_tokens")
"""Change the logits before the temperature does."""
TRUNCATING = ("top_p", "top_k", "min_p")
PERCENTILE = 99


class Compared(Value):
    sample_id: str
    span: Span
    recorded: Logprobs
    rescored: Logprobs

    @property
    def differences(self) -> Logprobs:
        differences: Logprobs = np.abs(self.recorded - self.rescored)
        return differences

    @property
    def mean(self) -> float:
        return float(self.differences.mean())


class NotCompared(Value):
    sample_id: str
    span: Span
    why: str


class Weights(Value):
    """One line of the table: all spans sampled under one version."""

    version: str | None
    spans: int
    tokens: int
    mean: float
    """Of all tokens."""
    worst_span: float
    """The highest mean of a span: what the tolerance is for."""
    p99: float
    max: float
    beyond: int
    """Spans beyond the tolerance."""


class Token(Value):
    """One that differs much, and where it stands."""

    sample_id: str
    position: int
    recorded: float
    rescored: float


def checkable(sample: Sample) -> list[Span]:
    """Each span once, however many branches share it."""
    return [span for span in sample.spans if span.trained]


def compared(sample: Sample, scored: Scored, held: str | None) -> Iterator[Compared | NotCompared]:
    """`held`: the version of the weights that scored; None: nobody knows, and there is only one."""
    for span in checkable(sample):
        why = why_not(span, held)
        rescored = _rescored(scored, span)
        if why is None and len(rescored) != span.end - span.start:
            why = "the engine scored fewer tokens than there are"
        if why is not None:
            yield NotCompared(sample.id, span, why)
        else:
            recorded = sample.logprobs[span.start : span.end]
            yield Compared(sample.id, span, recorded, rescored)


def _rescored(scored: Scored, span: Span) -> Logprobs:
    """Of a token with nothing before it there is no score: whatever was recorded of it compares with none."""
    unscored = np.full(max(scored.start - span.start, 0), np.nan, np.float32)
    found: Logprobs = scored.logprobs[max(span.start - scored.start, 0) : max(span.end - scored.start, 0)]
    return np.concatenate([unscored, found])


def why_not(span: Span, held: str | None) -> str | None:
    """Compared is what was recorded of the model's own distribution, under the same weights, and nothing else."""
    if held is not None and span.weight_version is not None and held != span.weight_version:
        return f"sampled under weights {span.weight_version}, and the engine has {held}"
    if span.constrained or span.sampling.get("guide"):
        return "sampled under a guide, which leaves tokens out"
    changed = {name for name in NEUTRAL.__struct_fields__ if _differs(span.sampling, name)}
    if span.logprob_kind == "raw":
        # SGLang's raw ones are of before the temperature, and of after what shapes the logits.
        shaped = changed.intersection(SHAPING) if span.engine_kind == "sglang" else set()
    else:
        shaped = changed.intersection(SHAPING) | _at_other_temperature(span.sampling)
        shaped |= changed.intersection(TRUNCATING) if span.logprob_kind == "processed" else set()
    return f"its logprobs are of after {', '.join(sorted(shaped))}" if shaped else None


def _differs(sampling: dict[str, JSON], name: str) -> bool:
    neutral = getattr(NEUTRAL, name)
    return name in sampling and sampling[name] != (list(neutral) if isinstance(neutral, tuple) else neutral)


def _at_other_temperature(sampling: dict[str, JSON]) -> set[str]:
    """At 0 nothing is divided: the best is taken."""
    return set() if sampling.get("temperature", 1.0) in (0, 1) else {"temperature"}


def by_weights(spans: Sequence[Compared], tolerance: float) -> list[Weights]:
    versions = dict.fromkeys(one.span.weight_version for one in spans)
    return [
        _line(version, [one for one in spans if one.span.weight_version == version], tolerance) for version in versions
    ]


def _line(version: str | None, spans: Sequence[Compared], tolerance: float) -> Weights:
    differences = np.concatenate([one.differences for one in spans])
    return Weights(
        version=version,
        spans=len(spans),
        tokens=len(differences),
        mean=float(differences.mean()),
        worst_span=max(one.mean for one in spans),
        p99=float(np.percentile(differences, PERCENTILE)),
        max=float(differences.max()),
        beyond=sum(one.mean > tolerance for one in spans),
    )


def worst(spans: Sequence[Compared], count: int) -> list[Token]:
    def token(one: Compared, place: int) -> Token:
        recorded, rescored = float(one.recorded[place]), float(one.rescored[place])
        return Token(one.sample_id, one.span.start + place, recorded, rescored)

    ranked = sorted(
        ((float(difference), one, place) for one in spans for place, difference in enumerate(one.differences)),
        key=lambda entry: -entry[0],
    )
    return [token(one, place) for _, one, place in ranked[:count]]
