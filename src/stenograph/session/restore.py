"""The conversation as it will be rendered: what the caller left out of its echo is put back from the record."""

from __future__ import annotations

import msgspec

from stenograph.core import Conversation, Message
from stenograph.session.match import Match
from stenograph.session.tree import Tree


def restored(tree: Tree, conversation: Conversation, matched: Match, *, strict: bool) -> Conversation:
    """The recorded messages where the request continues them, the caller's own behind them.

    `strict`: reasoning that the caller did not send back is not put back.
    """
    echoed = conversation.messages[: matched.shared]
    recorded = tree.messages(matched.after)
    renamed = _renamed_calls(recorded, echoed)
    for turn in tree.conversation(matched.after):
        recorded[turn.call.reply_index] = turn.written or turn.reply
    if strict:
        recorded = [_without_unsent(ours, theirs) for ours, theirs in zip(recorded, echoed, strict=True)]
    new = [_answering(message, renamed) for message in conversation.messages[matched.shared :]]
    return msgspec.structs.replace(conversation, messages=(*recorded, *new))


def _without_unsent(ours: Message, theirs: Message) -> Message:
    return ours if theirs.reasoning is not None else msgspec.structs.replace(ours, reasoning=None)


def _renamed_calls(recorded: list[Message], echoed: tuple[Message, ...]) -> dict[str, str]:
    """An agent may give calls ids of its own. Results that come back under them answer the recorded ones."""
    return {
        theirs.id: ours.id
        for mine, sent in zip(recorded, echoed, strict=True)
        if mine.tool_calls
        for ours, theirs in zip(mine.tool_calls, sent.tool_calls, strict=True)
        if ours.id != theirs.id
    }


def _answering(message: Message, renamed: dict[str, str]) -> Message:
    if message.tool_call_id not in renamed:
        return message
    return msgspec.structs.replace(message, tool_call_id=renamed[message.tool_call_id])
