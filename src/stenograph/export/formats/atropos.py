"""Scored groups for Atropos' trajectory API, a group a line (atroposlib 0.4.0, `atroposlib.api.server.ScoredData`).

What `POST /scored_data` takes. A masked position is -100 in `masks` and 1.0 in `inference_logprobs`, as
`ManagedServer` writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stenograph.export.formats.columns import lines, masked_logprobs, origin
from stenograph.export.rollouts import groups, reward

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample

MASKED = -100
NO_LOGPROB = 1.0


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    return lines(row([sample for rollout in group for sample in rollout]) for group in groups(samples))


def row(group: list[Sample]) -> dict[str, JSON]:
    return {
        "tokens": [sample.tokens.tolist() for sample in group],
        "masks": [_labels(sample) for sample in group],
        "scores": [reward(sample, "atropos") for sample in group],
        "inference_logprobs": [masked_logprobs(sample, NO_LOGPROB) for sample in group],
        "generation_params": _generation(group),
        "overrides": [{"stenograph": origin(sample)} for sample in group],
    }


def _labels(sample: Sample) -> list[int]:
    pairs = zip(sample.tokens.tolist(), sample.mask.tolist(), strict=True)
    return [token if trained else MASKED for token, trained in pairs]


def _generation(group: list[Sample]) -> dict[str, JSON] | None:
    """Its trainers read the temperature there, one for the group; None where there is no one."""
    found = {span.sampling["temperature"] for sample in group for span in sample.spans}
    return {"temperature": found.pop()} if len(found) == 1 else None
