"""What several formats make of a sample: a prompt and a response, masked logprobs, rewards at their turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample


class Halves(NamedTuple):
    """The prompt is what stands before the first sampled token; all that follows, tools' answers too, is response."""

    prompt: list[int]
    response: list[int]
    mask: list[int]
    """Of the response, as are the logprobs."""
    logprobs: list[float]


def halves(sample: Sample) -> Halves:
    at = response_start(sample)
    tokens = sample.tokens.tolist()
    return Halves(tokens[:at], tokens[at:], sample.mask[at:].tolist(), sample.logprobs[at:].tolist())


def response_start(sample: Sample) -> int:
    """Consumers want a response of one token at least: where nothing was sampled it is the last one, masked."""
    return sample.spans[0].start if sample.spans else max(len(sample.tokens) - 1, 0)


def masked_logprobs(sample: Sample, elsewhere: float = 0.0) -> list[float]:
    """Of what is trained; `elsewhere` where the consumer has a number of its own for the rest."""
    pairs = zip(sample.logprobs.tolist(), sample.mask.tolist(), strict=True)
    return [logprob if trained else elsewhere for logprob, trained in pairs]


def turn_rewards(sample: Sample) -> list[dict[str, JSON]]:
    """Those that were given, with the tokens that the turn sampled: half open, counted from the sequence's first. Of a
    turn that sampled nothing they are none, at the end."""
    length = len(sample.tokens)
    starts = {span.turn_id: span.start for span in reversed(sample.spans)}
    ends = {span.turn_id: span.end for span in sample.spans}
    return [
        {
            "turn_id": turn,
            "start": starts.get(turn, length),
            "end": ends.get(turn, length),
            "reward": reward,
        }
        for turn, reward in sample.rewards.items()
        if reward is not None
    ]


def turn_count(sample: Sample) -> int:
    """Turns that sampled something."""
    return len({span.turn_id for span in sample.spans})


def origin(sample: Sample) -> dict[str, JSON]:
    """Which rollout a row is of, and what its consumer's own fields have no place for."""
    return {
        "session_id": sample.session_id,
        "group": sample.group,
        "role": sample.role,
        "branch": sample.branch,
        "main": sample.main,
        "turn_rewards": turn_rewards(sample),
        "scores": dict(sample.scores),
        "status": sample.status,
        "versions": list(sample.versions),
        **({"teacher_info": msgspec.to_builtins(sample.teacher_info)} if sample.teacher_info else {}),
    }


def teachings(sample: Sample, start: int) -> dict[str, JSON]:
    """By teacher, its rows from a token on; empty where nobody was asked for a teacher."""
    return {
        name: {
            "top_k": one.top_k,
            "token_ids": one.token_ids[start:].tolist(),
            "logprobs": one.logprobs[start:].tolist(),
            "token_logprobs": one.token_logprobs[start:].tolist(),
        }
        for name, one in (sample.teachers or {}).items()
    }


def lines(rows: Iterable[dict[str, JSON]]) -> Iterator[bytes]:
    """A JSON object a line."""
    for row in rows:
        yield msgspec.json.encode(row) + b"\n"
