"""The answers of Completions, as types: what OpenAI documents, with vLLM's token fields, which stand on the choice."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from stenograph.core import FinishReason, Value
from stenograph.wire.chat_answer import Stop
from stenograph.wire.usage import Usage


class CompletionLogprobs(Value):
    """Four columns, one entry a sampled token, also for those that no text shows."""

    tokens: list[str]
    """The bytes as text; U+FFFD where they are only part of a character."""
    token_logprobs: list[float]
    """What the engine reported, as float32: the double that is written here is exactly that number."""
    top_logprobs: list[dict[str, float]]
    """By the token as it is written in `tokens`: the sampled one first, then the others, best first. Of several that
    are written alike the first counts; `return_tokens_as_token_ids` tells them apart."""
    text_offset: list[int]
    """In characters, from where the sampled text begins, everything sampled being spelled out."""


class CompletionChoice(Value, kw_only=True):
    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: FinishReason
    stop_reason: Stop
    """vLLM's: the id or the string that ended it; null for the model's own end, or a length."""
    turn_id: str
    prompt_token_ids: list[int] | UnsetType = UNSET
    token_ids: list[int] | UnsetType = UNSET


class Completion(Value, kw_only=True):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage
    prompt_token_ids: list[int] | UnsetType = UNSET
    """As Chat Completions has it."""


class CompletionChunkChoice(Value, kw_only=True):
    index: int
    text: str = ""
    logprobs: CompletionLogprobs | None = None
    finish_reason: FinishReason | None = None
    stop_reason: Stop | UnsetType = UNSET
    """On the chunk that ends the choice."""
    turn_id: str | UnsetType = UNSET
    """On the first chunk of the choice, as `prompt_token_ids`."""
    prompt_token_ids: list[int] | UnsetType = UNSET
    token_ids: list[int] | UnsetType = UNSET


class CompletionChunk(Value, kw_only=True):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChunkChoice]
    usage: Usage | UnsetType | None = UNSET
    """Only with `include_usage`: null, but for the last chunk, which has no choices."""
