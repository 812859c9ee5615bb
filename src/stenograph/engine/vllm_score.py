"""vLLM's `prompt_logprobs`: how likely each token of a prompt is, raw whatever `--logprobs-mode` is. Pure."""

from __future__ import annotations

import msgspec

from stenograph.core import JSON
from stenograph.engine.scoring import Scored, scored_from
from stenograph.errors import EvidenceError


class _Entry(msgspec.Struct):
    logprob: JSON


class _Choice(msgspec.Struct):
    prompt_token_ids: list[int]
    prompt_logprobs: list[dict[str, _Entry] | None]


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens_details: _Details | None = None
    """Told by a server that runs with `--enable-prompt-tokens-details`."""


class _Answer(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


def score_body(ids: list[int], top_k: int, model: str) -> bytes:
    """One token is sampled too, and thrown away: vLLM takes no request for none."""
    fields: dict[str, JSON] = {
        "model": model,
        "prompt": ids,
        "max_tokens": 1,
        "temperature": 1.0,
        "prompt_logprobs": top_k,
        "return_token_ids": True,
        "add_special_tokens": False,
    }
    return msgspec.json.encode(fields)


def scores_of(label: str, ids: list[int], top_k: int, start: int, answer: bytes) -> Scored:
    """vLLM tells all positions, whatever is wanted of them."""
    try:
        read = msgspec.json.decode(answer, type=_Answer)
        choice = read.choices[0]
    except (msgspec.DecodeError, IndexError) as error:
        raise EvidenceError(f"{label} answered what cannot be read: {error}") from error
    if choice.prompt_token_ids != ids or len(choice.prompt_logprobs) != len(ids):
        raise EvidenceError(f"{label} scored other tokens than it was sent")
    if not all(key.isdecimal() for row in choice.prompt_logprobs for key in row or ()):
        raise EvidenceError(f"{label} does not name the alternatives by their ids")
    rows = [{int(key): entry.logprob for key, entry in (row or {}).items()} for row in choice.prompt_logprobs[start:]]
    logprobs = [row.get(id) for id, row in zip(ids[start:], rows, strict=True)]
    details = read.usage and read.usage.prompt_tokens_details
    return scored_from(label, ids, start, logprobs, rows, top_k, details.cached_tokens if details else None)
