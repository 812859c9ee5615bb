"""The items of a Responses body to `core.Message`s.

A reply went out as several items, and comes back as such: its reasoning, its text, each of its calls. They are one
message again where their ids name one turn, or, where an agent gives no ids, as far as one reply can reach: reasoning
comes first, and of two texts in a row the second is another reply. An agent may put a call's result between two calls
of one reply; the ids tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from stenograph.core import JSON, Message, Note, Reference, ToolCall, Value
from stenograph.wire import body, chat_messages, extras
from stenograph.wire.chat_messages import FunctionField, Part
from stenograph.wire.responses_names import item_named
from stenograph.wire.responses_seal import unsealed
from stenograph.wire.responses_tools import INPUT, model_name

PARTS: dict[str, Literal["reasoning", "content", "call"]] = {
    "rs": "reasoning", "msg": "content", "fc": "call", "ctc": "call", "ctj": "call",
}  # fmt: skip
"""What an item of ours is of its reply."""


class ItemField(Value, kw_only=True):
    """Any item: which fields count depends on its type."""

    type: str | None = None
    """A message may go without."""
    id: str | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: JSON = None
    summary: JSON = None
    encrypted_content: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: str | dict[str, JSON] | None = None
    input: JSON = None
    output: JSON = None


class Read(Value):
    """A body's items, read. The last three go into an `Ask` as they are."""

    messages: tuple[Message, ...]
    references: tuple[Reference, ...] = ()
    named: frozenset[str] = frozenset()
    notes: tuple[Note, ...] = ()


def read(items: str | Sequence[ItemField], before: int) -> Read:
    """`before`: how many messages stand before the first item, which is what references count from."""
    if isinstance(items, str):
        return Read((Message("user", items),))
    reader = _Reader(before)
    for index, item in enumerate(items):
        reader.take(item, f"input[{index}]")
    return reader.read


class _Reply:
    """An assistant message of which the items come one by one."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.turn: str | None = None
        self.reasoning: list[str] = []
        self.content: list[str] = []
        self.calls: list[ToolCall] = []
        self.last = ""
        """What kind of part came last."""
        self.open = True
        """Nothing of anybody else has come behind it."""

    def goes_on(self, part: str, turn: str | None) -> bool:
        if turn is not None and self.turn is not None:
            return turn == self.turn
        if part == "reasoning":
            return self.open and self.last in ("", "reasoning")
        return self.open and not (part == self.last == "content")

    @property
    def message(self) -> Message:
        return Message(
            role="assistant",
            content="".join(self.content) if self.content else None,
            reasoning="\n".join(self.reasoning) if self.reasoning else None,
            tool_calls=tuple(self.calls),
        )


class _Reader:
    def __init__(self, before: int) -> None:
        self._before = before
        self._said: list[Message | _Reply] = []
        self._reply: _Reply | None = None
        self._references: list[Reference] = []
        self._named: set[str] = set()
        self._notes: list[Note] = []

    @property
    def read(self) -> Read:
        messages = (said.message if isinstance(said, _Reply) else said for said in self._said)
        notes = extras.each_once(self._notes)
        return Read(tuple(messages), tuple(self._references), frozenset(self._named), notes)

    def take(self, item: ItemField, at: str) -> None:
        match item.type or ("message" if item.role or item.id is None else "item_reference"):
            case "message":
                self._message(item, at)
            case "reasoning":
                reply = self._part("reasoning", item.id)
                reply.reasoning += [text for text in (self._reasoning(item, at),) if text is not None]
            case "function_call" | "custom_tool_call":
                self._part("call", item.id).calls.append(_call(item, at))
            case "function_call_output" | "custom_tool_call_output":
                self._other(_result(item, at))
            case "item_reference":
                self._reference(item, at)
            case other:
                raise body.refuse(f"{at}.type", f"items of type {other} are not supported: no reply here had one")

    def _message(self, item: ItemField, at: str) -> None:
        if item.role is None:
            raise body.refuse(f"{at}.role", "it is required")
        text = _text(item.content, f"{at}.content", item.role)
        if item.role == "assistant":
            self._part("content", item.id).content.append(text)
        else:
            self._other(Message(item.role, text))

    def _other(self, message: Message) -> None:
        if self._reply is not None:
            self._reply.open = False
        self._said.append(message)

    def _part(self, part: str, id: str | None) -> _Reply:
        """The reply that it is a part of."""
        name = item_named(id)
        turn = name.turn if name else None
        if self._reply is None or not self._reply.goes_on(part, turn):
            self._reply = _Reply(self._before + len(self._said))
            self._said.append(self._reply)
        self._reply.turn = self._reply.turn or turn
        self._reply.last = part
        self._named |= {turn} if turn else set()
        return self._reply

    def _reference(self, item: ItemField, at: str) -> None:
        name = item_named(item.id)
        if item.id is None or name is None:
            raise body.refuse(f"{at}.id", f"there is no item {item.id} here", code="item_not_found")
        part = PARTS[name.kind]
        reply = self._part(part, item.id)
        if part != "content" or name.place == 0:  # the text of a reply is one, though it may have gone out in pieces
            self._references.append(Reference(item=item.id, turn=name.turn, part=part, place=name.place, at=reply.at))

    def _reasoning(self, item: ItemField, at: str) -> str | None:
        """As it was; ours, sealed; or what somebody made of it. None: nothing is said, so the record's own stands."""
        if content := "".join(_texts(item.content, f"{at}.content")):
            return content
        sealed = item.encrypted_content
        if sealed is not None and (ours := unsealed(sealed)) is not None:
            return ours
        summary = "\n\n".join(_texts(item.summary, f"{at}.summary"))
        if sealed and not summary:
            self._notes.append(extras.ignored("input.encrypted_content"))
        return summary or None


def _text(content: JSON, at: str, role: str) -> str:
    parts = content if isinstance(content, str) else body.convert(content, list[Part | str], at)
    return chat_messages.text(parts, at, role)


def _texts(parts: JSON, at: str) -> Iterator[str]:
    for place, part in enumerate(body.convert(parts or [], list[Part], at)):
        if part.text is None:
            raise body.refuse(f"{at}[{place}].text", "it is required")
        yield part.text


def _call(item: ItemField, at: str) -> ToolCall:
    if item.name is None:
        raise body.refuse(f"{at}.name", "it is required")
    if not item.call_id:
        raise body.refuse(f"{at}.call_id", "it is required")
    name, ours = model_name(item.name, item.namespace), item_named(item.id)
    if item.type == "function_call":
        return chat_messages.tool_call(item.call_id, FunctionField(name, item.arguments))
    text = body.convert(item.input, str, f"{at}.input")
    if ours is not None and ours.kind == "ctj":
        return chat_messages.tool_call(item.call_id, FunctionField(name, text))
    return ToolCall(item.call_id, name, {INPUT: text})


def _result(item: ItemField, at: str) -> Message:
    if not item.call_id:
        raise body.refuse(f"{at}.call_id", "it is required")
    return Message("tool", _text(item.output, f"{at}.output", "tool"), tool_call_id=item.call_id)
