"""prime-rl's training batch: what its trainer finds as `rollouts.bin` (PrimeIntellect-ai/prime-rl, the layout at
004274e: one sample a branch, advantages as channels, `prime_rl.transport.types.TrainingBatch`; it is not on PyPI).

MessagePack of structs that are arrays, so the order of fields is the format; those behind the last one that is set are
left out. The advantage of a token is its rollout's reward less the group's mean, so that a rollout of several branches
counts once. `step` is 0: whoever puts the batch into a step's folder knows which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from stenograph.errors import ConfigError
from stenograph.export.rollouts import Rollout, advantages, groups, total_reward

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample

LOSS = "rl"
"""The channel of advantages that its policy loss reads."""


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    """In one piece: a batch is what one step trains on."""
    examples = [example for group in groups(samples) for example in _examples(group)]
    yield msgspec.msgpack.encode([examples, 0])


def _examples(group: list[Rollout]) -> Iterator[list[JSON]]:
    for rollout, advantage in zip(group, advantages(group, "prime-rl"), strict=True):
        total = total_reward(rollout, "prime-rl")
        for sample in rollout:
            yield example(sample, advantage, total)


def example(sample: Sample, advantage: float, total: float) -> list[JSON]:
    mask = [bool(trained) for trained in sample.mask.tolist()]
    return [
        sample.tokens.tolist(),
        mask,
        sample.logprobs.tolist(),
        _temperatures(sample),
        str(sample.metadata.get("env_name", "")),
        [[LOSS, [advantage if trained else 0.0 for trained in mask], mask]],
        total,
    ]


def _temperatures(sample: Sample) -> list[float]:
    """One a token. Its logits are divided by them, those of the token before a sampled one too: so context has the
    temperature of what follows it, and behind the last span that of the last."""
    temperatures: list[float] = []
    for span in sample.spans:
        temperature = float(span.sampling["temperature"])
        if temperature == 0:
            raise ConfigError(
                f"session {sample.session_id} was sampled at temperature 0, by which prime-rl would divide"
            )
        temperatures += [temperature] * (span.end - len(temperatures))
    last = temperatures[-1] if temperatures else 1.0
    return temperatures + [last] * (len(sample.tokens) - len(temperatures))
