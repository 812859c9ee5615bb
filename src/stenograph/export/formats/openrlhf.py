"""What an OpenRLHF agent executor returns, a rollout a line (openrlhf 0.11.2, `AgentExecutorBase.execute`).

Its `SamplesGenerator._process_response_into_experience` reads these keys and no others; ours stand under `stenograph`.
A reward that is None on the first sample of a batch drops the others' there: so each has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stenograph.export.formats.columns import lines, masked_logprobs, origin
from stenograph.export.rollouts import reward

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    return lines(map(row, samples))


def row(sample: Sample) -> dict[str, JSON]:
    own = reward(sample, "openrlhf")
    return {
        "prompt": sample.metadata.get("prompt", ""),
        "label": sample.metadata.get("label", ""),
        "observation_tokens": sample.tokens.tolist(),
        "action_ranges": [(span.start, span.end) for span in sample.spans if span.trained],
        "rollout_log_probs": masked_logprobs(sample),
        "truncated": sample.truncated is not None,
        "reward": own,
        "scores": own,
        "extra_logs": {},  # has to have the same keys on every sample of a run, which nobody here can know
        "stenograph": origin(sample),
    }
