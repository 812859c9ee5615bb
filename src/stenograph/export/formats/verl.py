"""verl's agent loop output, a rollout a line (verl 0.9.1, `verl.experimental.agent_loop.AgentLoopOutput`).

`AgentLoopOutput(**row)`. A turn's reward goes where its own tool agent writes it, `extra_fields["turn_scores"]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stenograph.export.formats.columns import halves, lines, origin, turn_count, turn_rewards

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    return lines(map(row, samples))


def row(sample: Sample) -> dict[str, JSON]:
    parts = halves(sample)
    return {
        "prompt_ids": parts.prompt,
        "response_ids": parts.response,
        "response_mask": parts.mask,
        "response_logprobs": parts.logprobs,
        "reward_score": sample.reward,
        "num_turns": 2 * turn_count(sample),  # what was put to the model counts too: its single turn has 2
        "metrics": {},
        "extra_fields": {
            "turn_scores": [turn["reward"] for turn in turn_rewards(sample)],
            "tool_rewards": [],
            "stenograph": origin(sample),
        },
    }
