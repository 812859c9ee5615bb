"""What TRL's `rollout_func` returns, a group a line (trl 1.16.0, `GRPOTrainer`).

`env_mask` is 1 on what is trained. Every other list is handed to the reward functions, an entry a completion: `reward`
is there for one that returns it, and may be None, which GRPO takes for "not scored". So is `teachers`, by name: row j
is of the distribution that predicts `completion_ids[j]`, as `logprobs[j]` is of that token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stenograph.export.formats.columns import halves, lines, origin, response_start, teachings
from stenograph.export.rollouts import groups

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    return lines(row([sample for rollout in group for sample in rollout]) for group in groups(samples))


def row(group: list[Sample]) -> dict[str, JSON]:
    parts = [halves(sample) for sample in group]
    return {
        "prompt_ids": [one.prompt for one in parts],
        "completion_ids": [one.response for one in parts],
        "logprobs": [one.logprobs for one in parts],
        "env_mask": [one.mask for one in parts],
        "reward": [sample.reward for sample in group],
        "stenograph": [origin(sample) for sample in group],
        **({"teachers": [_teachings(sample) for sample in group]} if group[0].teacher_info else {}),
    }


def _teachings(sample: Sample) -> dict[str, JSON]:
    return teachings(sample, response_start(sample))
