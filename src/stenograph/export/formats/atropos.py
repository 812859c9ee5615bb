"""Scored groups for Atropos' trajectory API, a group a line (atroposlib 0.4.0, `atroposlib.api.server.ScoredData`).

What `POST /scored_data` takes. A masked position is -100 in `masks` and 1.0 in `inference_logprobs`, as
`ManagedServer` writes them. `distill_token_ids` and `distill_logprobs` are not shifted: row i is of the distribution
that predicts `tokens[i]`; where nothing is known, the first row always, ids are -1 and logprobs 0.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stenograph.export.formats.columns import lines, masked_logprobs, origin
from stenograph.export.rollouts import groups, reward

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample, Teaching

MASKED = -100
NO_LOGPROB = 1.0
UNKNOWN = -1


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    return lines(row([sample for rollout in group for sample in rollout]) for group in groups(samples))


def row(group: list[Sample]) -> dict[str, JSON]:
    return {
        "tokens": [sample.tokens.tolist() for sample in group],
        "masks": [_labels(sample) for sample in group],
        "scores": [reward(sample, "atropos") for sample in group],
        "inference_logprobs": [masked_logprobs(sample, NO_LOGPROB) for sample in group],
        "generation_params": _generation(group),
        "overrides": [{"stenograph": _origin(sample)} for sample in group],
        **(_distill(group) if group[0].teacher_info else {}),
    }


def _distill(group: list[Sample]) -> dict[str, JSON]:
    """One width for the group: where a sequence has less, or nothing, its rows say that they know nothing."""
    teachings = [next(iter((sample.teachers or {}).values()), None) for sample in group]
    width = max((one.top_k for one in teachings if one), default=0)
    if not width:
        return {"distill_token_ids": None, "distill_logprobs": None}
    rows = [tables(one, len(sample.tokens), width) for sample, one in zip(group, teachings, strict=True)]
    return {
        "distill_token_ids": [ids for ids, _ in rows],
        "distill_logprobs": [logprobs for _, logprobs in rows],
    }


def tables(teaching: Teaching | None, length: int, width: int) -> tuple[list[JSON], list[JSON]]:
    """A sequence's ids and logprobs, position by position."""
    if teaching is None:
        return [[UNKNOWN] * width] * length, [[0.0] * width] * length
    lacking = width - teaching.top_k
    return (
        [row + [UNKNOWN] * lacking for row in teaching.token_ids.tolist()],
        [row + [0.0] * lacking for row in teaching.logprobs.tolist()],
    )


def _origin(sample: Sample) -> dict[str, JSON]:
    """The teacher's logprobs of the tokens themselves have no field of their own."""
    found = [teaching.token_logprobs.tolist() for teaching in (sample.teachers or {}).values()]
    return origin(sample) | ({"teacher_logprobs": found[0]} if found else {})


def _labels(sample: Sample) -> list[int]:
    pairs = zip(sample.tokens.tolist(), sample.mask.tolist(), strict=True)
    return [token if trained else MASKED for token, trained in pairs]


def _generation(group: list[Sample]) -> dict[str, JSON] | None:
    """Its trainers read the temperature there, one for the group; None where there is no one."""
    found = {span.sampling["temperature"] for sample in group for span in sample.spans}
    return {"temperature": found.pop()} if len(found) == 1 else None
