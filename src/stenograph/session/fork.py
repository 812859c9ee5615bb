"""Why a request does not continue the deepest turn its caller could have meant (law 4).

Asked when the call is committed, not when it arrives: of two calls at once the first to be recorded simply goes on,
and the second is the branch.
"""

from __future__ import annotations

from stenograph.core import Fork, ForkReason, Turn
from stenograph.session.match import Chained, Match
from stenograph.session.tree import Tree


def fork_of(tree: Tree, asked: Chained, matched: Match) -> Fork | None:
    """None: the request goes on where it could be expected to, or is the session's first."""
    changed = _changed_key(tree, asked, matched)
    if changed is not None:
        return changed
    if matched.contradicted is not None and matched.contradicted >= matched.shared:
        return Fork(ForkReason.ASSISTANT_EDITED, matched.contradicted, "its reasoning was changed")
    if not tree.calls:
        return None
    messages = asked.conversation.messages
    known = _known(tree, asked, matched.shared)
    foreign = [index for index in range(known, len(messages)) if messages[index].role == "assistant"]
    if not foreign:
        return _continuation(tree, asked, matched, known)
    return _edited(tree, asked, matched, known)


def _changed_key(tree: Tree, asked: Chained, matched: Match) -> Fork | None:
    """Tools and template arguments stand before every message."""
    for turn in _would_continue(tree, asked, matched):
        if turn.call.tools_hash != asked.tools_hash:
            return Fork(ForkReason.TOOLS_CHANGED, 0, f"other tools than {turn.id} had")
        if turn.call.arguments_hash != asked.arguments_hash:
            return Fork(ForkReason.TEMPLATE_ARGUMENTS_CHANGED, 0, f"other template arguments than {turn.id} had")
    return None


def _would_continue(tree: Tree, asked: Chained, matched: Match) -> list[Turn]:
    if matched.after is not None and matched.after != matched.anchor:
        return [tree.turns[matched.after]]
    same = tree.asked_at(asked.links[-1])
    if any((call.tools_hash, call.arguments_hash) == (asked.tools_hash, asked.arguments_hash) for call in same):
        return []
    return [turn for turn in tree.turns.values() if same and turn.call is same[-1]][:1]


def _known(tree: Tree, asked: Chained, shared: int) -> int:
    """Index of the first message that no recorded conversation has in this place."""
    return next(
        (index for index in range(shared, len(asked.links)) if tree.seen_at(asked.links[index]) is None),
        len(asked.links),
    )


def _continuation(tree: Tree, asked: Chained, matched: Match, known: int) -> Fork | None:
    """Nothing but new messages behind the deepest turn."""
    if tree.asked_at(asked.links[-1]):
        return Fork(ForkReason.RESAMPLED, len(asked.links) - 1, "the same conversation was asked before")
    if matched.after is not None:
        others = tree.continuations(matched.after)
        return Fork(ForkReason.BRANCHED, known, f"{matched.after} was continued before") if others else None
    if known == 0:
        return Fork(ForkReason.NEW_CONVERSATION, 0)
    return _edited(tree, asked, matched, known)


def _edited(tree: Tree, asked: Chained, matched: Match, known: int) -> Fork | None:
    """Something that was recorded has changed, or is gone."""
    echoes = _echoes(tree, asked, known)
    if any(was > now for was, now in echoes):
        return Fork(ForkReason.HISTORY_SHORTENED, known, "later messages are the recorded ones, moved up")
    before = asked.links[known - 1] if known else None
    if asked.conversation.messages[known].role == "assistant" and before and tree.asked_at(before):
        return Fork(ForkReason.ASSISTANT_EDITED, known)
    if echoes:
        return Fork(ForkReason.HISTORY_EDITED, known)
    if matched.after is not None:
        return Fork(ForkReason.BRANCHED, known) if tree.continuations(matched.after) else None
    if known == 0:
        return Fork(ForkReason.NEW_CONVERSATION, 0)
    seen = tree.seen_at(asked.links[known - 1])
    shorter = seen is not None and len(asked.links) <= max(
        turn.call.shared + len(turn.call.messages) for turn in tree.turns.values()
    )
    return Fork(ForkReason.HISTORY_SHORTENED if shorter else ForkReason.HISTORY_EDITED, known)


def _echoes(tree: Tree, asked: Chained, known: int) -> list[tuple[int, int]]:
    """Recorded replies that come again behind the divergence: at which index they were said, and are now."""
    return [
        (max(tree.reply_indexes(asked.hashes[index])), index)
        for index in range(known, len(asked.hashes))
        if asked.conversation.messages[index].role == "assistant" and tree.reply_indexes(asked.hashes[index])
    ]
