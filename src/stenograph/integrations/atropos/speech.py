"""A reply as Atropos' environments read it: reasoning and answer are one text, and a call is a dictionary.

The record has both apart. So what is answered is put together from the tokens, and where it comes back in a history it
is taken apart again by the record: an environment may go on scoring `<think>` in the content, and the turn extends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pydantic_core
from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion_message_function_tool_call import (
    ChatCompletionMessageFunctionToolCall,
    Function,
)

from stenograph.core import JSON, Message, Turn
from stenograph.errors import CallerError
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
    if said.get("stream"):
        raise CallerError("stream: a managed server answers whole; its ManagedClient streams", param="stream")
    extra = said.pop("extra_body", {})
    body: dict[str, JSON] = pydantic_core.to_jsonable_python({**said, **extra})
    return body


class Speech:
    """Of one session: what was answered, and what it is on record."""

    def __init__(self, turns: Mapping[str, Turn], spelling: Spelling) -> None:
        """`turns`: the session's, by id; it grows."""
        self._turns = turns
        self._spelling = spelling
        self._joined: dict[str, Message] = {}
        """Replies with reasoning, by the text that was answered for them."""

    def as_there(self, answer: ChatCompletion) -> ChatCompletion:
        for choice in answer.choices:
            turn = self._turns.get(getattr(choice, "turn_id", ""))
            whole = self._whole(turn) if turn is not None else None
            if turn is not None and whole is not None:
                choice.message.content = whole
                self._joined[whole.strip()] = turn.reply
            if choice.message.tool_calls:
                calls = [Call.model_validate(call.model_dump()) for call in choice.message.tool_calls]
                choice.message.tool_calls = [*calls]
        return answer

    def as_recorded(self, messages: Sequence[JSON]) -> list[JSON]:
        """The inverse, for a history: what `as_there` joined is taken apart."""
        return [self._apart(message) for message in messages]

    def convert_messages_for_template(self, messages: Sequence[JSON]) -> list[JSON]:
        """What environments ask Atropos' translator for: each call as the text that it was sampled as."""
        sampled = {call.id: turn for turn in self._turns.values() for call in turn.reply.tool_calls}
        return [self._with_calls_as_text(message, sampled) for message in messages]

    def _whole(self, turn: Turn) -> str | None:
        """Reasoning and answer as sampled; None where there is no reasoning, or a call and no answer."""
        reply = turn.reply
        if reply.reasoning is None or (reply.tool_calls and not reply.content):
            return None
        text = self._sampled(turn)
        found = text.rfind(reply.content) if reply.content else -1
        return text[: found + len(reply.content or "")] if found >= 0 else text

    def _sampled(self, turn: Turn) -> str:
        return self._spelling.decode([id for id in turn.sampled.tolist() if id not in self._spelling.special])

    def _apart(self, message: JSON) -> JSON:
        if not isinstance(message, dict) or message.get("role") != "assistant":
            return message
        reply = self._joined.get(_text(message.get("content")).strip())
        if reply is None:
            return message
        return {**message, "content": reply.content, "reasoning_content": reply.reasoning}

    def _with_calls_as_text(self, message: JSON, sampled: Mapping[str, Turn]) -> JSON:
        named = (sampled.get(call["id"]) for call in message.get("tool_calls") or ())
        turn = next(filter(None, named), None)
        if turn is None:
            return message
        rest = {name: value for name, value in message.items() if name != "tool_calls"}
        return {**rest, "content": self._sampled(turn)}


def _text(content: JSON) -> str:
    """Of a message's content, which may be in parts."""
    if not isinstance(content, list):
        return str(content)
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
