"""The messages of an Anthropic body to `core.Message`: blocks in, the messages that a chat template knows out.

A user's turn may hold results of tools and text: each result is a message of its own, and each run of text between
them is one, in their order. Consecutive turns of a user are one turn, as Anthropic has it. An assistant's turn is one
message whatever its blocks are; two in a row stay two, because the first may be a beginning that the model was given.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType

from stenograph.core import JSON, Message, Note, ToolCall, Value
from stenograph.wire import body, extras
from stenograph.wire import messages_signature as signature

BILLING = "x-anthropic-billing-header:"
"""A block of Claude Code's system prompt that begins so is for Anthropic's books, and differs from task to task."""
TEXT, RESULT, REFERENCE = "text", "tool_result", "tool_reference"
THINKING, REDACTED, CALL = "thinking", "redacted_thinking", "tool_use"
ALLOWED = {
    "system": (TEXT,),
    "user": (TEXT, RESULT),
    "assistant": (TEXT, THINKING, REDACTED, CALL),
    RESULT: (TEXT, REFERENCE),
}
"""Where they may stand, the blocks that can be written by a template."""
_NEEDED = {
    TEXT: ("text",),
    RESULT: ("tool_use_id",),
    REFERENCE: ("tool_name",),
    THINKING: ("thinking",),
    REDACTED: (),
    CALL: ("id", "name"),
}


_SUPPORTED = "no images, documents or audio, and nothing that only Anthropic's servers run"
NO_TOOLS: Mapping[str, str] = {}


class Block(Value, kw_only=True):
    """Of any kind. What says nothing to a template is passed over: `cache_control`, `citations`, `caller`."""

    type: str
    text: str | UnsetType = UNSET
    thinking: str | UnsetType = UNSET
    signature: str = ""
    id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    input: dict[str, JSON] | None = None
    tool_use_id: str | UnsetType = UNSET
    tool_name: str | UnsetType = UNSET
    content: str | list[Block] | None = None
    """Of a result."""
    is_error: bool | None = None


Blocks: TypeAlias = str | list[Block]
"""A text is short for one block of it."""
Placed: TypeAlias = tuple[str, Block]
"""With its place in the body."""


class MessageField(Value):
    role: Literal["user", "assistant", "system"]
    content: Blocks


def messages(given: Sequence[MessageField], system: Blocks | None, deferred: Mapping[str, str]) -> tuple[Message, ...]:
    """`deferred`: the definitions of tools that are not in the prompt until a result refers to them."""
    told = [placed for placed in _told(system) if not _is_billing(placed[1])]
    head = (Message("system", _joined("system", told)),) if told else ()
    return (*head, *(message for role, blocks in _turns(given) for message in _turn(role, blocks, deferred)))


def notes(given: Sequence[MessageField], system: Blocks | None) -> Iterator[Note]:
    if any(_is_billing(block) for _, block in _told(system)):
        yield extras.ignored("system.x-anthropic-billing-header")
    for _, block in (placed for _, blocks in _turns(given) for placed in blocks):
        if block.type == REDACTED or (_is_blank(block) and signature.turn(block.signature) is None):
            yield extras.ignored(f"messages.{block.type}")
        if block.is_error:
            yield extras.ignored("messages.tool_result.is_error")


def named(given: Sequence[MessageField]) -> frozenset[str]:
    """The turns of ours that are echoed, as far as their thinking tells."""
    blocks = (block for field in given for _, block in _placed(field.content, "") if block.type == THINKING)
    return frozenset(turn for block in blocks if (turn := signature.turn(block.signature)) is not None)


def _told(system: Blocks | None) -> Iterator[Placed]:
    return iter(()) if system is None else _placed(system, "system")


def _turns(given: Sequence[MessageField]) -> Iterator[tuple[str, list[Placed]]]:
    placed = [(field.role, list(_placed(field.content, f"messages[{at}].content"))) for at, field in enumerate(given)]
    for role, group in itertools.groupby(placed, key=lambda turn: turn[0]):
        if role == "user":
            yield role, [block for _, blocks in group for block in blocks]
        else:
            yield from group


def _placed(blocks: Blocks, at: str) -> Iterator[Placed]:
    if isinstance(blocks, str):
        yield at, Block(type=TEXT, text=blocks)
    else:
        yield from ((f"{at}[{index}]", block) for index, block in enumerate(blocks))


def _turn(role: str, blocks: list[Placed], deferred: Mapping[str, str]) -> Iterator[Message]:
    for at, block in blocks:
        _check(role, at, block)
    if role == "assistant":
        yield _reply(blocks)
    elif role == "system":
        yield Message("system", _joined(role, blocks))
    else:
        yield from _heard(blocks, deferred)


def _check(where: str, at: str, block: Block) -> None:
    if block.type not in _NEEDED:
        raise body.refuse(f"{at}.type", f"blocks of type {block.type} are not supported yet: {_SUPPORTED}")
    if block.type not in ALLOWED[where]:
        raise body.refuse(f"{at}.type", f"a {block.type} block cannot stand here: only {', '.join(ALLOWED[where])}")
    for name in _NEEDED[block.type]:
        if getattr(block, name) is UNSET:
            raise body.refuse(f"{at}.{name}", "it is required")


# ------------------------------------------------------------------------------------------------------ what is heard


def _heard(blocks: list[Placed], deferred: Mapping[str, str]) -> Iterator[Message]:
    """A turn without a block is a message without a word."""
    for kind, run in itertools.groupby(blocks or [("", Block(type=TEXT, text=""))], key=lambda placed: placed[1].type):
        if kind == RESULT:
            yield from (_result(at, block, deferred) for at, block in run)
        else:
            yield Message("user", _joined("user", run))


def _result(at: str, block: Block, deferred: Mapping[str, str]) -> Message:
    parts = [] if block.content is None else list(_placed(block.content, f"{at}.content"))
    return Message("tool", _joined(RESULT, parts, deferred), tool_call_id=str(block.tool_use_id))


def _joined(where: str, blocks: Iterable[Placed], deferred: Mapping[str, str] = NO_TOOLS) -> str:
    """Paragraphs of a prompt: joined by a line break, as the parts of a chat message are."""
    texts = []
    for at, block in blocks:
        _check(where, at, block)
        name = str(block.tool_name)
        texts.append(deferred.get(name, name) if block.type == REFERENCE else str(block.text))
    return "\n".join(texts)


# ------------------------------------------------------------------------------------------------------- what is said


def _reply(blocks: list[Placed]) -> Message:
    texts = [str(block.text) for _, block in blocks if block.type == TEXT]
    calls = [block for _, block in blocks if block.type == CALL]
    thoughts = [thought for at, block in blocks if (thought := _thought(at, block)) is not None]
    return Message(
        role="assistant",
        content="".join(texts) if texts else None,
        reasoning="".join(thoughts) if thoughts else None,
        tool_calls=tuple(ToolCall(str(call.id), str(call.name), call.input or {}) for call in calls),
    )


def _thought(at: str, block: Block) -> str | None:
    """None: no thinking, or none that could be read."""
    if block.type != THINKING:
        return None
    if block.signature.startswith(signature.CARRIED):
        thinking = signature.carried(block.signature)
        if thinking is None:
            raise body.refuse(f"{at}.signature", "it was given out here, but has been changed since")
        return thinking
    return None if _is_blank(block) else str(block.thinking)


def _is_billing(block: Block) -> bool:
    return isinstance(block.text, str) and block.text.startswith(BILLING)


def _is_blank(block: Block) -> bool:
    return block.type == THINKING and not block.thinking
