"""The figures at the top of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from stenograph.core import Logprobs, Sample, Span
from stenograph.inspector.words import FORKS


def totals(samples: Sequence[Sample]) -> dict[str, str]:
    """Turns that branches share count once; rewards count once a session."""
    logprobs = _distinct_logprobs(samples)
    return {
        "sessions": _count(len({sample.session_id for sample in samples})),
        "branches": _count(len(samples)),
        "tokens sampled": _count(len(logprobs)),
        "tokens trained": _count(sum(int(sample.mask.sum()) for sample in samples)),
        "mean logprob": _mean(logprobs, 3),
        "mean reward": _mean(_rewards(samples), 3),
        "forks": _count(sum(sample.fork is not None for sample in samples)),
    }


def forks_in_words(samples: Iterable[Sample]) -> list[str]:
    """The most frequent first."""
    reasons = Counter(sample.fork.reason for sample in samples if sample.fork)
    return [f"{count} × {FORKS[reason]}" for reason, count in reasons.most_common()]


def origins(samples: Iterable[Sample]) -> dict[str, str]:
    """Who sampled all this, under which weights, and what kind of logprob it reported."""
    spans = [span for sample in samples for span in sample.spans]
    found = {
        "Model": _distinct(span.model for span in spans),
        "Engine": _distinct(span.engine for span in spans),
        "Weights": _distinct(span.weight_version for span in spans),
        "Logprobs": _distinct(span.logprob_kind for span in spans),
    }
    return {label: names for label, names in found.items() if names}


def _distinct_logprobs(samples: Iterable[Sample]) -> Logprobs:
    runs: dict[tuple[str, str, int], Logprobs] = {}
    for sample in samples:
        for span in sample.spans:
            runs.setdefault(_key(sample, span), sample.logprobs[span.start : span.end])
    return np.concatenate([np.zeros(0, np.float32), *runs.values()])


def _key(sample: Sample, span: Span) -> tuple[str, str, int]:
    return sample.session_id, span.turn_id, span.part


def _rewards(samples: Iterable[Sample]) -> list[float]:
    by_session = {sample.session_id: sample.reward for sample in samples}
    return [reward for reward in by_session.values() if reward is not None]


def _distinct(names: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(filter(None, names)))


def _count(number: int) -> str:
    return f"{number:,}"


def _mean(numbers: Logprobs | list[float], digits: int) -> str:
    return f"{np.mean(numbers, dtype=np.float64):.{digits}f}".replace("-", "\N{MINUS SIGN}") if len(numbers) else "–"
