"""Which recorded logprobs a trainer can divide by.

A trainer that forms importance ratios computes the sampled tokens' probabilities anew, and divides by the recorded
ones. That compares two policies only where both are of one kind of distribution. Where they are not, the ratio is off
from the first step on, and nothing fails: so it is counted, and said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stenograph.core import LogprobKind, Sample, Span

BENT = ("presence_penalty", "frequency_penalty", "logit_bias")
"""With `repetition_penalty` and guides: they change the odds in a way that no trainer repeats."""


KINDS: Mapping[LogprobKind, str] = {
    "raw": "raw logprobs",
    "temperature": "logprobs after temperature",
    "processed": "logprobs after temperature, top-k and top-p",
}


class Ratios:
    """Watches samples go by on their way to a trainer that recomputes logprobs of `kind`, if it recomputes any."""

    def __init__(self, name: str, kind: LogprobKind | None) -> None:
        self._name = name
        self._kind = kind
        self._spans = 0
        self._flaws: Counter[str] = Counter()

    def watched(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        for sample in samples:
            if self._kind is not None:
                self._watch([span for span in sample.spans if span.trained], self._kind)
            yield sample

    def said(self) -> Iterator[str]:
        """A line for each thing that is wrong, with how often it is."""
        for flaw, spans in self._flaws.items():
            wanted = KINDS[self._kind or "raw"]
            yield f"{self._name} forms ratios with {wanted}, and {spans} of {self._spans} spans {flaw}"

    def _watch(self, trained: Sequence[Span], kind: LogprobKind) -> None:
        self._spans += len(trained)
        self._flaws.update(found for span in trained if (found := flaw(span, kind)))


def flaw(span: Span, kind: LogprobKind) -> str | None:
    """What is wrong with ratios of this span in a trainer that recomputes `raw` logprobs, or those after `temperature`;
    None where recorded and recomputed ones are of the same distribution, the one that was sampled from."""
    temperature = span.sampling["temperature"]
    if temperature == 0:
        return "were sampled greedily, at temperature 0"
    if temperature != 1 and (span.logprob_kind == "raw") != (kind == "raw"):
        return f"have {KINDS[span.logprob_kind]}, at temperature {temperature}"
    if temperature != 1 and kind == "raw":
        return f"were sampled at temperature {temperature}"
    if span.sampling["top_p"] != 1 or span.sampling["top_k"] > 0 or span.sampling["min_p"] > 0:
        return "were sampled from a truncated distribution (top_p, top_k, min_p)"
    if span.constrained or span.sampling["repetition_penalty"] != 1 or any(span.sampling[name] for name in BENT):
        return "were sampled under a penalty, a bias or a guide"
    return None
