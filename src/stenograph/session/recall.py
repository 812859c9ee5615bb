"""What a caller names instead of sending it is put in its place, from the record: the past, or parts of a reply."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stenograph.core import Ask, Conversation, Message, Reference, Text, Tokens, Turn
from stenograph.errors import CallerError
from stenograph.session.tree import Tree


def recalled(tree: Tree, ask: Ask) -> Conversation | Text | Tokens:
    """The whole prompt. Instructions are a call's own: the named turn's are left out, these stand first."""
    prompt = ask.prompt
    if not isinstance(prompt, Conversation):
        return prompt
    messages = _filled(tree, prompt.messages, ask.references)
    if ask.previous is None:
        return msgspec.structs.replace(prompt, messages=messages)
    own = int(ask.instructed)
    first = _known(tree, ask.previous)[0].call
    past = tree.messages(ask.previous)[1 if first.instructed else 0 :]
    return msgspec.structs.replace(prompt, messages=(*messages[:own], *past, *messages[own:]))


def meant(tree: Tree, ask: Ask) -> frozenset[str]:
    """The turns that the caller names, in whatever way."""
    if ask.previous is None:
        return ask.named
    return ask.named | {turn.id for turn in tree.conversation(ask.previous)}


def _known(tree: Tree, turn_id: str) -> list[Turn]:
    if turn_id not in tree.turns:
        raise CallerError(
            f"this session has no response of turn {turn_id}",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    return tree.conversation(turn_id)


def _filled(tree: Tree, messages: tuple[Message, ...], references: Iterable[Reference]) -> tuple[Message, ...]:
    filled = list(messages)
    for reference in references:
        filled[reference.at] = _with(filled[reference.at], _part(tree, reference))
    return tuple(filled)


def _part(tree: Tree, reference: Reference) -> Message:
    """A reply of which only the part is there."""
    turn = tree.turns.get(reference.turn)
    calls = turn.reply.tool_calls[reference.place :][:1] if turn and reference.part == "call" else ()
    if turn is None or (reference.part == "call" and not calls):
        raise CallerError(f"this session has no item {reference.item}", code="item_not_found", param="input")
    return Message(
        role="assistant",
        content=turn.reply.content if reference.part == "content" else None,
        reasoning=turn.reply.reasoning if reference.part == "reasoning" else None,
        tool_calls=calls,
    )


def _with(message: Message, part: Message) -> Message:
    return msgspec.structs.replace(
        message,
        content=part.content if message.content is None else message.content,
        reasoning=part.reasoning if message.reasoning is None else message.reasoning,
        tool_calls=(*message.tool_calls, *part.tool_calls),
    )
