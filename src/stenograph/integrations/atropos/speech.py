"""A reply as Atropos' environments read it: reasoning and answer are one text, and a call is a dictionary.

The record has both apart. So what is answered is put together from the tokens, and where it comes back in a history it
is taken apart again by the record: an environment may go on scoring `<think>` in the content, and the turn extends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pydantic_core
from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion_message_function_tool_call import (
    ChatCompletionMessageFunctionToolCall,
    Function,
)

from stenograph.core import JSON, Message, Turn
from stenograph.session.plain import Spelling


class _AsDict:
    """`call["function"]["name"]` is what its users wrote, `call.function.name` what OpenAI's types have."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)

    def keys(self) -> list[str]:
        return list(type(self).model_fields)  # type: ignore[attr-defined]


class CalledFunction(_AsDict, Function):
    """Of a call."""


class Call(_AsDict, ChatCompletionMessageFunctionToolCall):
    """A tool call, both ways."""

    function: CalledFunction


def as_json(fields: dict[str, Any]) -> dict[str, JSON]:
    """A body. Environments put the SDK's own messages, and calls of earlier answers, into their histories."""
    said = {name: value for name, value in fields.items() if value is not None}
    body: dict[str, JSON] = pydantic_core.to_jsonable_python({**said, **(said.pop("extra_body", None) or {})})
    body.pop("extra_body", None)
    return body


def spoken(turn: Turn, spelling: Spelling) -> str | None:
    """Reasoning and answer as sampled, special tokens left out; None where there is no reasoning, or no answer yet."""
    reply = turn.reply
    if reply.reasoning is None or (reply.tool_calls and not reply.content):
        return None
    text = spelling.decode([id for id in turn.sampled.tolist() if id not in spelling.special])
    end = text.rfind(reply.content) + len(reply.content) if reply.content and reply.content in text else len(text)
    return text[:end]


def as_there(answer: ChatCompletion, turns: Sequence[Turn], spelling: Spelling) -> ChatCompletion:
    """`turns`: of the session, in which each choice's own is found."""
    by_id = {turn.id: turn for turn in turns}
    for choice in answer.choices:
        turn = by_id.get(getattr(choice, "turn_id", ""))
        whole = spoken(turn, spelling) if turn is not None else None
        if whole is not None:
            choice.message.content = whole
        if choice.message.tool_calls:
            choice.message.tool_calls = [Call.model_validate(call.model_dump()) for call in choice.message.tool_calls]
    return answer


def as_recorded(messages: Sequence[JSON], turns: Sequence[Turn], spelling: Spelling) -> list[JSON]:
    """The inverse, for a history: what `as_there` joined is taken apart."""
    joined = dict(_joined(turns, spelling))
    return [_apart(message, joined) for message in messages]


def _joined(turns: Sequence[Turn], spelling: Spelling) -> Iterator[tuple[str, Message]]:
    for turn in turns:
        whole = spoken(turn, spelling)
        if whole is not None:
            yield whole.strip(), turn.reply


def _apart(message: JSON, joined: dict[str, Message]) -> JSON:
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return message
    reply = joined.get(str(message.get("content")).strip())
    if reply is None:
        return message
    return {**message, "content": reply.content, "reasoning_content": reply.reasoning}


class Translator:
    """What environments ask theirs for: a history in which each call is the text that it was sampled as."""

    def __init__(self, turns: Sequence[Turn], spelling: Spelling) -> None:
        self._turns = turns
        self._spelling = spelling

    def convert_messages_for_template(self, messages: Sequence[JSON]) -> list[JSON]:
        sampled = {call.id: turn for turn in self._turns for call in turn.reply.tool_calls}
        return [self._as_text(message, sampled) for message in messages]

    def _as_text(self, message: JSON, sampled: dict[str, Turn]) -> JSON:
        named = (sampled.get(call["id"]) for call in message.get("tool_calls") or ())
        turn = next(filter(None, named), None)
        if turn is None:
            return message
        ids = [id for id in turn.sampled.tolist() if id not in self._spelling.special]
        rest = {name: value for name, value in message.items() if name != "tool_calls"}
        return {**rest, "content": self._spelling.decode(ids)}
