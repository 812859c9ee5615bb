"""The answers of Chat Completions, as types: what OpenAI documents, with the token fields of vLLM."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType

from stenograph.core import FinishReason, Value
from stenograph.wire.logprobs import TokenLogprob
from stenograph.wire.usage import Usage

Stop: TypeAlias = int | str | None


class Logprobs(Value):
    content: list[TokenLogprob]
    """One entry a sampled token, also for those that no text shows."""


class FunctionCall(Value):
    name: str
    arguments: str


class FunctionToolCall(Value):
    id: str
    function: FunctionCall
    type: Literal["function"] = "function"


class ChatMessage(Value):
    role: Literal["assistant"]
    content: str | None
    """null where there are tool calls and no text."""
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[FunctionToolCall] | UnsetType = UNSET


class ChatChoice(Value):
    index: int
    message: ChatMessage
    logprobs: Logprobs | None
    finish_reason: FinishReason
    stop_reason: Stop
    """vLLM's: the id or the string that ended it; null for the model's own end, or a length."""
    turn_id: str
    token_ids: list[int] | UnsetType = UNSET


class ChatCompletion(Value, kw_only=True):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    prompt_token_ids: list[int] | UnsetType = UNSET


class FunctionDelta(Value):
    arguments: str
    name: str | UnsetType = UNSET


class ToolCallDelta(Value):
    """`id`, `type` and `name` come with a call's first delta; the SDKs would join a second one to it."""

    index: int
    function: FunctionDelta
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET


class ChatDelta(Value):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[ToolCallDelta] | UnsetType = UNSET


class ChatChunkChoice(Value):
    index: int
    delta: ChatDelta
    logprobs: Logprobs | None = None
    finish_reason: FinishReason | None = None
    stop_reason: Stop | UnsetType = UNSET
    """On the chunk that ends the choice."""
    turn_id: str | UnsetType = UNSET
    """On the first chunk of the choice."""
    token_ids: list[int] | UnsetType = UNSET


class ChatCompletionChunk(Value, kw_only=True):
    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | UnsetType | None = UNSET
    """Only with `include_usage`: null, but for the last chunk, which has no choices."""
    prompt_token_ids: list[int] | UnsetType = UNSET
    """On the first chunk of each choice."""
