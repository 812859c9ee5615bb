"""Tinker's training data, a datum a line (tinker 0.38.0, `tinker.types.Datum`, in its wire form).

Inputs are the tokens but the last, targets the tokens but the first, and every other column is shifted with the
targets, as tinker-cookbook 0.6.1 does it (`trajectory_to_data`). The cookbook's `mask` is for metrics: it is taken off
before the call, and what is not trained has an advantage of 0. The advantage is the rollout's reward less its group's
mean, as in its `compute_advantages`, so that a rollout of several branches counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from stenograph.export.formats.columns import lines, masked_logprobs, origin
from stenograph.export.rollouts import Rollout, advantages, groups, total_reward

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    return lines(row for group in groups(samples) for row in _rows(group))


def _rows(group: list[Rollout]) -> Iterator[dict[str, JSON]]:
    for rollout, advantage in zip(group, advantages(group, "tinker"), strict=True):
        total = total_reward(rollout, "tinker")
        for sample in rollout:
            yield {"datum": datum(sample, advantage), "total_reward": total, "stenograph": origin(sample)}


def datum(sample: Sample, advantage: float) -> dict[str, JSON]:
    tokens, mask = sample.tokens.tolist(), sample.mask.tolist()
    return {
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": tokens[:-1]}]},
        "loss_fn_inputs": {
            "target_tokens": _tensor(tokens, "int64"),
            "logprobs": _tensor(masked_logprobs(sample), "float32"),
            "advantages": _tensor([advantage if trained else 0.0 for trained in mask], "float32"),
            "mask": _tensor([float(trained) for trained in mask], "float32"),
        },
    }


def _tensor(column: Sequence[float], dtype: str) -> dict[str, JSON]:
    """The column, shifted with the targets."""
    return {"data": column[1:], "dtype": dtype, "shape": [len(column) - 1]}
