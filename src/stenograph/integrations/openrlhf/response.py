"""The one dict that `execute` returns, as `SamplesGenerator._process_response_into_experience` reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import msgspec

from stenograph.core import JSON, Sample, Span
from stenograph.export.formats import openrlhf
from stenograph.integrations.openrlhf.outcome import Failure, Outcome
from stenograph.wire.sampling import given_by_session

SHAPES = ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
"""What changes the odds that the trainer computes its own logprobs of."""
SHORTEST = 2
"""Upstream drops a sequence's first token: of a shorter one nothing would be left to batch."""
OWN = "stenograph_"
"""Before the names of our own logs."""


def response(
    samples: Sequence[Sample], outcome: Outcome, trainers: Mapping[str, JSON], instead: Sequence[int]
) -> dict[str, Any]:
    """`samples`: the session's branches. The main one is returned: it holds the latest turn of the conversation that
    the agent began with. `trainers`: the sampling that the trainer asked for. `instead`: what stands where nothing was
    sampled."""
    main = next((sample for sample in samples if sample.main), None)
    told = _nothing(instead) if main is None else openrlhf.row(msgspec.structs.replace(main, reward=outcome.reward))
    if outcome.failure is not None:
        told |= {"action_ranges": [], "rollout_log_probs": [0.0] * len(told["observation_tokens"])}
    logs = _logs(samples, main, outcome, trainers)
    return told | {"reward": outcome.reward, "scores": outcome.scores, "extra_logs": {**outcome.extra_logs, **logs}}


def _nothing(tokens: Sequence[int]) -> dict[str, Any]:
    return {"observation_tokens": [*tokens], "truncated": False}


def _logs(
    samples: Sequence[Sample], main: Sample | None, outcome: Outcome, trainers: Mapping[str, JSON]
) -> dict[str, float]:
    """The same names on every sample: upstream averages them over a batch."""
    numbers = {
        "branches": len(samples),
        "turns": len({span.turn_id for sample in samples for span in sample.spans}),
        "left_out_tokens": sum(int(sample.mask.sum()) for sample in samples if sample is not main),
        "own_sampling": len(_own_sampling(main.spans if main else (), trainers)),
        "failed": outcome.failure is not None,
        **{f"failed_{reason}": reason is outcome.failure for reason in Failure},
    }
    return {f"{OWN}{name}": float(number) for name, number in numbers.items()}


def _own_sampling(spans: Sequence[Span], trainers: Mapping[str, JSON]) -> set[str]:
    """Turns that the agent sampled otherwise than the trainer had asked for."""
    wanted = given_by_session(trainers)
    shaped = [name for name in SHAPES if name in wanted]
    return {span.turn_id for span in spans if any(span.sampling[name] != wanted[name] for name in shaped)}


def prompt_tokens(prompt: object, hf_tokenizer: Any, max_length: int) -> list[int]:
    """Without an agent there is no conversation to render: the text alone, long enough to be batched."""
    text = prompt if is_text(prompt) else ""
    ids: list[int] = hf_tokenizer(text=text, add_special_tokens=False)["input_ids"][:max_length]
    return ids + [hf_tokenizer.eos_token_id or 0] * (SHORTEST - len(ids))


def is_text(value: object) -> TypeGuard[str]:
    """Datasets hold half characters (lone surrogates) now and then, which no tokenizer and no store takes."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)
