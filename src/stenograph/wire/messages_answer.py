"""The answers of Anthropic Messages, as types: the message, and the events of its stream."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from stenograph.core import Value

StopReason: TypeAlias = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]


class TextBlock(Value, tag="text"):
    text: str


class ThinkingBlock(Value, tag="thinking"):
    thinking: str
    """'' where the caller asked to see none of it; the signature then carries it."""
    signature: str
    """See `messages_signature`."""


class ToolUseBlock(Value, tag="tool_use"):
    id: str
    name: str
    input: msgspec.Raw
    """The arguments as the model wrote them: an object. Of those that it never finished, what is complete."""


ContentBlock: TypeAlias = TextBlock | ThinkingBlock | ToolUseBlock


class Usage(Value):
    """All three of the input add up to the prompt."""

    input_tokens: int
    """Without what the engine says it had in its cache."""
    output_tokens: int
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    """Nobody pays for a cache here: always 0."""


class Message(Value, kw_only=True):
    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    model: str
    content: list[ContentBlock]
    """In the order in which the model wrote them; empty where it said nothing."""
    stop_reason: StopReason | None
    """null at the start of a stream, and where the engine gave up half way."""
    stop_sequence: str | None
    usage: Usage


class TextDelta(Value, tag="text_delta"):
    text: str


class ThinkingDelta(Value, tag="thinking_delta"):
    thinking: str


class SignatureDelta(Value, tag="signature_delta"):
    signature: str


class InputJsonDelta(Value, tag="input_json_delta"):
    partial_json: str


BlockDelta: TypeAlias = TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta


class MessageStart(Value, tag="message_start"):
    message: Message
    """Without content."""


class BlockStart(Value, tag="content_block_start"):
    index: int
    content_block: ContentBlock
    """Empty still."""


class BlockGrowth(Value, tag="content_block_delta"):
    index: int
    delta: BlockDelta


class BlockStop(Value, tag="content_block_stop"):
    index: int


class Ending(Value):
    stop_reason: StopReason | None
    stop_sequence: str | None


class MessageDelta(Value, tag="message_delta"):
    delta: Ending
    usage: Usage
    """Of the whole answer."""


class MessageStop(Value, tag="message_stop"):
    pass


class Ping(Value, tag="ping"):
    pass


BlockEvent: TypeAlias = BlockStart | BlockGrowth | BlockStop
StreamEvent: TypeAlias = MessageStart | BlockEvent | MessageDelta | MessageStop | Ping


class TokenCount(Value):
    input_tokens: int
