"""What a message means, as bytes: two messages that mean the same have one canonical form.

Set aside are: the outer white space of assistant text, how arguments are printed, the ids of calls (a result names the
place of its call instead), and reasoning, which is compared apart because most callers don't send it back.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from stenograph.core import JSON, Conversation, Message, ToolCall

_encode = msgspec.json.Encoder(order="sorted").encode


def digest(*parts: bytes) -> str:
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).hexdigest()


START = digest(b"conversation")


def arguments_value(call: ToolCall) -> JSON:
    """Arguments as values. Text that is no JSON may still be a Python literal, as sloppy agents write (`False`), and a
    literal may hold what JSON cannot: half a surrogate pair."""
    if isinstance(call.arguments, dict):
        return _plain_numbers(call.arguments)
    try:
        value = _plain_numbers(ast.literal_eval(call.arguments))
        _encode(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError, OverflowError):
        return call.arguments.strip()
    return value


def _plain_numbers(value: JSON) -> JSON:
    """1.0 and 1 are one number: JavaScript agents print the first as the second."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_numbers(inner) for inner in value]
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return repr(value)


def canonical(message: Message, call_place: int | None) -> bytes:
    """`call_place`: for a tool's result, which of the calls before it is answered; None where none is."""
    content = message.content or ""
    calls = [(call.name, arguments_value(call)) for call in message.tool_calls]
    answers = message.tool_call_id if call_place is None else call_place
    text = content.strip() if message.role == "assistant" else content
    return _encode((message.role, text, calls, answers, message.name))


def canonicals(messages: Iterable[Message], behind: Message | None = None) -> list[bytes]:
    """One a message. `behind`: the reply that precedes the first, whose calls a tool's result may answer."""
    forms, places = [], _places(behind)
    for message in messages:
        if message.role == "assistant":
            places = _places(message)
        forms.append(canonical(message, places.get(message.tool_call_id or "")))
    return forms


def _places(reply: Message | None) -> dict[str, int]:
    return {call.id: place for place, call in enumerate(reply.tool_calls)} if reply is not None else {}


def marks(messages: Iterable[Message], behind: Message | None = None) -> list[str]:
    """The same, hashed."""
    return [digest(form) for form in canonicals(messages, behind)]


def chain(start: str, marks: Iterable[str]) -> list[str]:
    """At each message, the hash of everything up to and with it."""
    links = []
    for mark in marks:
        start = digest(start.encode(), mark.encode())
        links.append(start)
    return links


def tools_hash(conversation: Conversation) -> str:
    return digest(_encode(conversation.tools))


def arguments_hash(conversation: Conversation) -> str:
    return digest(_encode(conversation.template_arguments))
