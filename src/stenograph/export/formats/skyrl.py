"""SkyRL's generator output, a group a line (skyrl 0.3.0, `skyrl.train.generators.base.GeneratorOutput`).

Lines are joined by its own `concatenate_generator_outputs`. Rewards are per token, as its gym generator writes them: a
turn's at the turn's last token, the session's at the very last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stenograph.export.formats.columns import halves, lines, origin, response_start, turn_rewards
from stenograph.export.rollouts import Rollout, groups, total_reward

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    return lines(map(row, groups(samples)))


def row(group: list[Rollout]) -> dict[str, JSON]:
    for rollout in group:
        total_reward(rollout, "skyrl")  # there is one
    samples = [sample for rollout in group for sample in rollout]
    parts = [halves(sample) for sample in samples]
    return {
        "prompt_token_ids": [one.prompt for one in parts],
        "response_ids": [one.response for one in parts],
        "rewards": [_rewards(sample) for sample in samples],
        "loss_masks": [one.mask for one in parts],
        "stop_reasons": ["length" if sample.truncated else "stop" for sample in samples],
        "rollout_metrics": None,
        "rollout_logprobs": [one.logprobs for one in parts],
        "trajectory_ids": [
            {"instance_id": sample.group or sample.session_id, "repetition_id": number}
            for number, rollout in enumerate(group)
            for sample in rollout
        ],
        "is_last_step": None,
        "env_metrics": [origin(sample) for sample in samples],
    }


def _rewards(sample: Sample) -> list[float]:
    start = response_start(sample)
    rewards = [0.0] * (len(sample.tokens) - start)
    for turn in turn_rewards(sample):
        rewards[turn["end"] - 1 - start] += turn["reward"]
    rewards[-1] += sample.reward or 0.0
    return rewards
