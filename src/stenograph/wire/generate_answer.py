"""The answers of `/inference/v1/generate`, as types: vLLM's, and `turn_id`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, UnsetType

from stenograph.core import FinishReason, Value
from stenograph.wire.chat_answer import Stop
from stenograph.wire.usage import Usage


class TokenEvidence(Value):
    token: str
    """`token_id:17`, as vLLM wrote it before it wrote `token_id`: clients check one or the other."""
    token_id: int
    logprob: float
    """What the engine reported, as float32: the double that is written here is exactly that number."""


class SampledEvidence(TokenEvidence):
    top_logprobs: list[TokenEvidence]
    """The sampled token first, then the others, best first: as many as were asked for."""


class Evidence(Value):
    content: list[SampledEvidence]
    """One entry an id of `token_ids`."""


class WeightVersionSpan(Value):
    version: str
    start: int
    end: int
    """Half open, indices into `token_ids`."""


class GenerateChoice(Value, kw_only=True):
    index: int
    token_ids: list[int]
    """All that were sampled: with the end of sequence, or the tokens of a stop string."""
    logprobs: Evidence | None
    finish_reason: FinishReason
    stop_reason: Stop
    """The id or the string that ended it; null for the model's own end, or a length."""
    weight_versions: list[WeightVersionSpan] | None
    """In order, without gaps; null where nobody named any."""
    turn_id: str


class Generated(Value, kw_only=True):
    request_id: str
    created: int
    model: str | None
    """As the caller named it."""
    output_mode: Literal["tokens"] = "tokens"
    choices: list[GenerateChoice]
    usage: Usage
    prompt_token_ids: list[int] | UnsetType = UNSET
    """With `return_token_ids`."""


class GenerateChunkChoice(Value, kw_only=True):
    index: int
    token_ids: Sequence[int] = ()
    logprobs: Evidence | None = None
    finish_reason: FinishReason | None = None
    stop_reason: Stop = None
    weight_versions: list[WeightVersionSpan] | None = None
    """Of the whole choice, on the chunk that ends it."""
    turn_id: str | UnsetType = UNSET
    """On the first chunk of the choice."""


class GenerateChunk(Value, kw_only=True):
    request_id: str
    output_mode: Literal["tokens"] = "tokens"
    choices: list[GenerateChunkChoice]
    usage: Usage | None = None
    """With `include_usage`, on the last chunk, which has no choices."""
    prompt_token_ids: list[int] | UnsetType = UNSET
    """With `return_token_ids`, on the first chunk of each choice."""
