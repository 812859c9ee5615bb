"""slime's samples, one a line (THUDM/slime at 0d234f3, `slime.utils.types.Sample`; it is not on PyPI).

`Sample.from_dict(row)`. What its own fields have no place for is in `metadata["stenograph"]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from stenograph.export.formats.columns import halves, lines, origin

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample

STATUS: Mapping[str, str] = {
    "open": "pending",
    "failed": "failed",
    "timeout": "failed",
    "expired": "failed",
    "cancelled": "aborted",
}
"""Its word for how a session stands or broke off; of one that is completed, how its last reply ended decides."""


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    return lines(_rows(samples))


def _rows(samples: Iterable[Sample]) -> Iterator[dict[str, JSON]]:
    groups: dict[str, int] = {}
    for index, sample in enumerate(samples):
        group = groups.setdefault(sample.group or f"session {sample.session_id}", len(groups))
        yield row(sample, group, index)


def row(sample: Sample, group: int, index: int) -> dict[str, JSON]:
    parts = halves(sample)
    return {
        "group_index": group,
        "index": index,
        "prompt": sample.metadata.get("prompt", ""),
        "tokens": sample.tokens.tolist(),
        "response_length": len(parts.response),
        "label": sample.metadata.get("label"),
        "reward": sample.reward,
        "loss_mask": parts.mask,
        "weight_versions": list(sample.versions),
        "rollout_log_probs": parts.logprobs,
        "status": _status(sample),
        "metadata": {**sample.metadata, "stenograph": origin(sample)},
        "session_id": sample.session_id,
    }


def _status(sample: Sample) -> str:
    if sample.status in STATUS:
        return STATUS[sample.status]
    if sample.truncated is None:
        return "completed"
    return "aborted" if sample.truncated == "aborted" else "truncated"
