"""How many tokens a call was, as OpenAI's older protocols and vLLM say it."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from stenograph.core import Done, Value


class PromptTokensDetails(Value):
    cached_tokens: int


class Usage(Value):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails | UnsetType = UNSET
    """Where the engine says how much of the prompt it had in its cache."""


def usage_of(done: Done) -> Usage:
    cached = UNSET if done.cached_tokens is None else PromptTokensDetails(done.cached_tokens)
    return Usage(done.prompt_tokens, done.completion_tokens, done.prompt_tokens + done.completion_tokens, cached)
