"""The messages of a chat body, as real clients and agents send them, to `core.Message`.

Echo fields of an answer (`annotations`, `refusal: null`, `audio: null`, our own `turn_id`) are what every agent loop
sends back; they are tolerated and say nothing. What cannot be seen by a template is not carried further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from stenograph.core import JSON, Message, Note, ToolCall, Value, too_nested
from stenograph.wire import body, extras

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
MAY_BE_EMPTY = frozenset({"assistant", "tool", "function"})
"""Roles whose content may be null. From anybody else a message without content is a mistake in the agent."""


class Part(Value):
    type: str = "text"
    text: str | None = None
    refusal: str | None = None


class FunctionField(Value):
    name: str
    arguments: str | dict[str, JSON] | None = None
    """JSON as text; an object as such is what some agents send, and None or '' is an empty one (as on vLLM)."""


class ToolCallField(Value):
    id: str | None = None
    type: str | None = None
    function: FunctionField | None = None


class MessageField(Value, kw_only=True, gc=False):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    """A closed list, as OpenAI's: a misspelt role would be rendered, and trained on, without a word."""
    content: str | list[Part | str] | None = None
    name: str | None = None
    tool_calls: list[ToolCallField] | None = None
    tool_call_id: str | None = None
    function_call: FunctionField | None = None
    """The form before `tool_calls`: one call, without an id."""
    reasoning_content: str | None = None
    reasoning: str | None = None
    """vLLM's newer name of `reasoning_content`, and OpenRouter's."""
    reasoning_details: JSON = None
    refusal: str | None = None
    audio: JSON = None
    prefix: bool | None = None
    """Mistral's and DeepSeek's mark of a prefill, which a trailing assistant message is here without it."""
    partial: bool | None = None
    """The same from Moonshot and Qwen."""


def messages(given: Sequence[MessageField]) -> tuple[Message, ...]:
    last = len(given) - 1
    return tuple(_message(field, f"messages[{index}]", index == last) for index, field in enumerate(given))


def notes(given: Sequence[MessageField]) -> Iterator[Note]:
    if any(field.reasoning_details is not None for field in given):
        yield extras.ignored("messages.reasoning_details")


def _message(field: MessageField, at: str, last: bool) -> Message:
    if field.audio is not None:
        raise body.refuse(f"{at}.audio", "audio is not supported yet")
    if field.prefix or field.partial:
        _check_prefill(field, at, last)
    content = _content(field, at)
    if content is None and field.role not in MAY_BE_EMPTY:
        raise body.refuse(f"{at}.content", f"it is required in a message of role {field.role}")
    assistant = field.role == "assistant"
    return Message(
        role="tool" if field.role == "function" else field.role,
        content=content,
        reasoning=_reasoning(field) if assistant else None,
        tool_calls=tuple(_calls(field, at)) if assistant and (field.tool_calls or field.function_call) else (),
        tool_call_id=field.tool_call_id,
        name=field.name,
    )


def _check_prefill(field: MessageField, at: str, last: bool) -> None:
    for name in ("prefix", "partial"):
        if getattr(field, name) and not (last and field.role == "assistant"):
            raise body.refuse(f"{at}.{name}", "only the last message, an assistant's, can be continued")


def _content(field: MessageField, at: str) -> str | None:
    if isinstance(field.content, str):
        return field.content
    return field.refusal if field.content is None else text(field.content, f"{at}.content", field.role)


def text(content: str | Sequence[Part | str], at: str, role: str) -> str:
    """Parts of one reply are pieces of one text, and joined as such. Other parts are joined by a line break, as on
    vLLM: they are a prompt's paragraphs, and nobody wrote them to be run together."""
    if isinstance(content, str):
        return content
    texts = [_text(part, f"{at}[{index}]") for index, part in enumerate(content)]
    return ("" if role == "assistant" else "\n").join(texts)


def _text(part: Part | str, at: str) -> str:
    if isinstance(part, str):
        return part
    if part.type not in TEXT_PARTS | {"refusal"}:
        raise body.refuse(
            f"{at}.type", f"parts of type {part.type} are not supported yet; only text is (no images, audio or files)"
        )
    name = "refusal" if part.type == "refusal" else "text"
    text: str | None = getattr(part, name)
    if text is None:
        raise body.refuse(f"{at}.{name}", "it is required")
    return text


def _reasoning(field: MessageField) -> str | None:
    return field.reasoning_content if field.reasoning is None else field.reasoning


def _calls(field: MessageField, at: str) -> Iterator[ToolCall]:
    for index, call in enumerate(field.tool_calls or ()):
        place = f"{at}.tool_calls[{index}]"
        if call.type not in (None, "function"):
            raise body.refuse(f"{place}.type", f"calls of type {call.type} are not supported; only function is")
        if call.function is None:
            raise body.refuse(f"{place}.function", "it is required")
        yield tool_call(call.id or "", call.function)
    if field.function_call is not None:
        yield tool_call("", field.function_call)


def tool_call(id: str, function: FunctionField) -> ToolCall:
    text = function.arguments if isinstance(function.arguments, str) else None
    return ToolCall(id, function.name, _arguments(function.arguments), text)


def _arguments(given: str | dict[str, JSON] | None) -> dict[str, JSON] | str:
    if given is None or isinstance(given, dict):
        return given or {}
    if not given.strip():
        return {}
    try:
        parsed = msgspec.json.decode(given)
    except (msgspec.DecodeError, RecursionError):
        return given
    return parsed if isinstance(parsed, dict) and not too_nested(parsed) else given
