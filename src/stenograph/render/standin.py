"""A conversation as the template is shown it: masked, and with placeholders where sampled text will be found again.

A reply that was sampled is not rendered with its own text but with a placeholder for each thing it says. Where the
placeholders come out, and in what surroundings, tells what the template does to that reply; its text stays what it is.
"""

from __future__ import annotations

import re

import msgspec

from stenograph.core import Message, ToolCall, Value
from stenograph.render.literal import Literals

OPEN, CLOSE = "\ufdd4", "\ufdd5"
"""Noncharacters, which `Literals` masks in every text from outside: no message can hold a placeholder."""
PLACEHOLDER = re.compile(f"{OPEN}([0-9]+)([rca])([0-9]+){CLOSE}")


class Saying(Value):
    """One thing a reply says, by which a placeholder is told from the others."""

    message: int
    kind: str
    """`r` reasoning, `c` content, `a` the arguments of a call."""
    number: int = 0
    """Which call."""

    @property
    def placeholder(self) -> str:
        return f"{OPEN}{self.message}{self.kind}{self.number}{CLOSE}"


class Place(Value):
    """Where a placeholder came out in a render."""

    saying: Saying
    start: int
    end: int


def places(text: str) -> list[Place]:
    return [
        Place(Saying(int(found[1]), found[2], int(found[3])), found.start(), found.end())
        for found in PLACEHOLDER.finditer(text)
    ]


def sayings(index: int, reply: Message) -> list[Saying]:
    """What a reply says, in the order in which every template writes it."""
    reasoning = [Saying(index, "r")] if reply.reasoning and reply.reasoning.strip() else []
    content = [Saying(index, "c")] if reply.content and reply.content.strip() else []
    return reasoning + content + [Saying(index, "a", number) for number in range(len(reply.tool_calls))]


def texts_of(index: int, message: Message) -> list[tuple[Saying, str]]:
    """What the placeholders of `text_stand_in` stand for."""
    return [
        (saying, (message.reasoning if saying.kind == "r" else message.content) or "")
        for saying in sayings(index, message)
        if saying.kind != "a"
    ]


def stand_in(index: int, reply: Message) -> Message:
    """The same shape as `reply`, with a placeholder for each text and at the end of each call's arguments."""
    kinds = {saying.kind for saying in sayings(index, reply)}
    return msgspec.structs.replace(
        reply,
        content=Saying(index, "c").placeholder if "c" in kinds else reply.content and "",
        reasoning=Saying(index, "r").placeholder if "r" in kinds else reply.reasoning and "",
        tool_calls=tuple(
            marked_call(call, Saying(index, "a", number).placeholder) for number, call in enumerate(reply.tool_calls)
        ),
    )


def text_stand_in(index: int, reply: Message) -> Message:
    """Placeholders for content and reasoning alone: what is looked for where a prompt is written anew."""
    return msgspec.structs.replace(stand_in(index, reply), tool_calls=reply.tool_calls)


def marked_call(call: ToolCall, mark: str) -> ToolCall:
    arguments = {**call.arguments, mark: ""} if isinstance(call.arguments, dict) else call.arguments + mark
    return msgspec.structs.replace(call, arguments=arguments)


class Masker:
    """Masks every marker in the texts of a message."""

    def __init__(self, literals: Literals, own_markers: frozenset[str]) -> None:
        """`own_markers`: those by which the family writes reasoning and calls. In an assistant message that the caller
        wrote itself they mean what they say; anywhere else they are text."""
        self._literals = literals
        own = sorted(own_markers)
        self._own = re.compile("(" + "|".join(map(re.escape, own)) + ")") if own else None

    def message(self, message: Message) -> Message:
        mask = self._literals.mask
        return msgspec.structs.replace(
            message,
            content=message.content and (self._assistant if message.role == "assistant" else mask)(message.content),
            reasoning=message.reasoning and mask(message.reasoning),
            tool_calls=tuple(self._call(call) for call in message.tool_calls),
            tool_call_id=message.tool_call_id and mask(message.tool_call_id),
            name=message.name and mask(message.name),
        )

    def reply(self, message: Message) -> Message:
        """A reply that was sampled here: its markers have been read, what is left of them is text."""
        masked = self.message(message)
        return msgspec.structs.replace(masked, content=message.content and self._literals.mask(message.content))

    def _call(self, call: ToolCall) -> ToolCall:
        mask, arguments = self._literals.mask, self._literals.mask_within(call.arguments)
        return msgspec.structs.replace(call, id=mask(call.id), name=mask(call.name), arguments=arguments)

    def _assistant(self, text: str) -> str:
        pieces = self._own.split(text) if self._own else [text]
        return "".join(piece if place % 2 else self._literals.mask(piece) for place, piece in enumerate(pieces))
