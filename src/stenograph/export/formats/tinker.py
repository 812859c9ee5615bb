"""Tinker's training data, a datum a line (tinker 0.38.0, `tinker.types.Datum`, in its wire form).

Inputs are the tokens but the last, targets the tokens but the first, and every other column is shifted with the
targets, as tinker-cookbook 0.6.1 does it (`trajectory_to_data`). The cookbook's `mask` is for metrics: it is taken off
before the call, and what is not trained has an advantage of 0. The advantage is the rollout's reward less its group's
mean, as in its `compute_advantages`, so that a rollout of several branches counts once.

What teachers say stands beside the datum, by name, shifted with the targets: row j is of the distribution that predicts
`target_tokens[j]`. `token_logprobs` are the teacher's of the targets, for advantages by reverse KL; `token_ids` and
`logprobs` have k columns, as `cross_entropy` takes targets and weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from stenograph.export.formats.columns import lines, masked_logprobs, origin, teachings
from stenograph.export.rollouts import Rollout, advantages, groups, total_reward

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    return lines(row for group in groups(samples) for row in _rows(group))


def _rows(group: list[Rollout]) -> Iterator[dict[str, JSON]]:
    for rollout, advantage in zip(group, advantages(group, "tinker"), strict=True):
        total = total_reward(rollout, "tinker")
        for sample in rollout:
            row = {"datum": datum(sample, advantage), "total_reward": total, "stenograph": origin(sample)}
            yield row | ({"teachers": _teachers(sample)} if sample.teacher_info else {})


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


def _teachers(sample: Sample) -> dict[str, JSON]:
    return {
        name: {
            "token_ids": _table(one["token_ids"], one["top_k"], "int64"),
            "logprobs": _table(one["logprobs"], one["top_k"], "float32"),
            "token_logprobs": _tensor([0.0, *one["token_logprobs"]], "float32"),
        }
        for name, one in teachings(sample, 1).items()
    }


def _table(rows: Sequence[Sequence[float]], width: int, dtype: str) -> dict[str, JSON]:
    """Row by row, as `target_tokens` of several alternatives are sent."""
    return {"data": [one for row in rows for one in row], "dtype": dtype, "shape": [len(rows), width]}


def _tensor(column: Sequence[float], dtype: str) -> dict[str, JSON]:
    """The column, shifted with the targets."""
    return {"data": column[1:], "dtype": dtype, "shape": [len(column) - 1]}
