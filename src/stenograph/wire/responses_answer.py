"""The answers of Responses, as types: what OpenAI documents, with the token fields of vLLM and a turn's id.

What a response says of its request (`tools`, `instructions`, …) are the caller's own bytes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, Raw, UnsetType, field, json

from stenograph.core import JSON, Value
from stenograph.wire.logprobs import TokenLogprob

Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]


# --------------------------------------------------------------------------------------------------------------- items


class OutputText(Value, tag_field="type", tag="output_text"):
    text: str
    logprobs: list[TokenLogprob] = field(default_factory=list)
    """Of the tokens that the text was sampled with, where they were asked for; one entry a token."""
    annotations: list[JSON] = field(default_factory=list)


class ReasoningText(Value, tag_field="type", tag="reasoning_text"):
    text: str


class MessageItem(Value, tag_field="type", tag="message"):
    id: str
    status: Status
    content: list[OutputText]
    role: Literal["assistant"] = "assistant"


class ReasoningItem(Value, tag_field="type", tag="reasoning"):
    id: str
    status: Status
    content: list[ReasoningText]
    summary: list[JSON] = field(default_factory=list)
    """Always empty: nobody here sums up."""
    encrypted_content: str | UnsetType = UNSET


class FunctionCallItem(Value, tag_field="type", tag="function_call"):
    id: str
    call_id: str
    name: str
    arguments: str
    status: Status
    namespace: str | UnsetType = UNSET


class CustomCallItem(Value, tag_field="type", tag="custom_tool_call"):
    id: str
    call_id: str
    name: str
    input: str
    status: Status
    namespace: str | UnsetType = UNSET


Item: TypeAlias = MessageItem | ReasoningItem | FunctionCallItem | CustomCallItem
Part: TypeAlias = OutputText | ReasoningText


# ------------------------------------------------------------------------------------------------------------ response


class InputTokensDetails(Value):
    cached_tokens: int
    cache_write_tokens: int = 0


class OutputTokensDetails(Value):
    reasoning_tokens: int


class Usage(Value):
    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class ResponseError(Value):
    code: str
    message: str
    type: str
    param: str | None


class Incomplete(Value):
    reason: Literal["max_output_tokens", "abort"]


class Response(Value, kw_only=True):
    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    error: ResponseError | None = None
    incomplete_details: Incomplete | None = None
    model: str
    output: list[Item] = field(default_factory=list)
    usage: Usage | None = None
    turn_id: str
    prompt_token_ids: list[int] | UnsetType = UNSET
    """As `token_ids`, once the response has ended: so each rides exactly once."""
    token_ids: list[int] | UnsetType = UNSET
    """All that was sampled."""

    background: Raw
    instructions: Raw
    max_output_tokens: Raw
    max_tool_calls: Raw
    metadata: Raw
    parallel_tool_calls: Raw
    previous_response_id: Raw
    prompt_cache_key: Raw
    reasoning: Raw
    safety_identifier: Raw
    service_tier: Raw
    store: Raw
    temperature: Raw
    text: Raw
    tool_choice: Raw
    tools: Raw
    top_logprobs: Raw
    top_p: Raw
    truncation: Raw
    user: Raw


_TOLD = {
    "background": False,
    "metadata": {},
    "parallel_tool_calls": True,
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
"""What a response says of its request where the request says nothing; null of everything else."""
UNASKED: dict[str, Raw] = {
    name: Raw(json.encode(_TOLD.get(name))) for name, type in Response.__annotations__.items() if type == "Raw"
}


# -------------------------------------------------------------------------------------------------------------- events


class Lifecycle(Value, kw_only=True):
    response: Response
    sequence_number: int = 0
    """From 0 on, without a gap: given when the event is sent."""


class Created(Lifecycle, tag_field="type", tag="response.created"): ...


class InProgress(Lifecycle, tag_field="type", tag="response.in_progress"): ...


class Completed(Lifecycle, tag_field="type", tag="response.completed"): ...


class Incompleted(Lifecycle, tag_field="type", tag="response.incomplete"): ...


class Failed(Lifecycle, tag_field="type", tag="response.failed"): ...


class OfItem(Value, kw_only=True):
    item_id: str
    output_index: int
    sequence_number: int = 0


class OfPart(OfItem, kw_only=True):
    content_index: int = 0
    """Every item here has one part at most."""


class ItemAdded(Value, tag_field="type", tag="response.output_item.added", kw_only=True):
    item: Item
    output_index: int
    sequence_number: int = 0


class ItemDone(Value, tag_field="type", tag="response.output_item.done", kw_only=True):
    item: Item
    output_index: int
    sequence_number: int = 0


class PartAdded(OfPart, tag_field="type", tag="response.content_part.added", kw_only=True):
    part: Part


class PartDone(OfPart, tag_field="type", tag="response.content_part.done", kw_only=True):
    part: Part


class TextDelta(OfPart, tag_field="type", tag="response.output_text.delta", kw_only=True):
    delta: str
    logprobs: list[TokenLogprob]


class TextDone(OfPart, tag_field="type", tag="response.output_text.done", kw_only=True):
    text: str
    logprobs: list[TokenLogprob]


class ReasoningDelta(OfPart, tag_field="type", tag="response.reasoning_text.delta", kw_only=True):
    delta: str


class ReasoningDone(OfPart, tag_field="type", tag="response.reasoning_text.done", kw_only=True):
    text: str


class ArgumentsDelta(OfItem, tag_field="type", tag="response.function_call_arguments.delta", kw_only=True):
    delta: str


class ArgumentsDone(OfItem, tag_field="type", tag="response.function_call_arguments.done", kw_only=True):
    name: str
    arguments: str


class InputDelta(OfItem, tag_field="type", tag="response.custom_tool_call_input.delta", kw_only=True):
    delta: str


class InputDone(OfItem, tag_field="type", tag="response.custom_tool_call_input.done", kw_only=True):
    input: str


class Failure(Value, tag_field="type", tag="error", kw_only=True):
    """Documented flat, sent nested: the SDKs raise on the second, others read the first."""

    code: str
    message: str
    param: str | None
    error: ResponseError
    sequence_number: int = 0


OfOutput: TypeAlias = (
    ItemAdded | PartAdded | TextDelta | TextDone | ReasoningDelta | ReasoningDone | ArgumentsDelta | ArgumentsDone
    | InputDelta | InputDone | PartDone | ItemDone
)  # fmt: skip
"""The events of which an output is made."""
StreamEvent: TypeAlias = Created | InProgress | OfOutput | Completed | Incompleted | Failed | Failure
