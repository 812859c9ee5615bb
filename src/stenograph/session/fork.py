"""Why a request does not continue the deepest turn its caller could have meant (law 4).

Asked when the call is committed, not when it arrives: of two calls at once the first to be recorded simply goes on,
and the second is the branch.

A caller says nothing of what it did to its history, so that is read from what is left of it. Recorded replies that
come again tell most: in their old places the past was edited, further up it was shortened. Where none comes again, a
history that is shorter than the one it was is a compaction.
"""

from __future__ import annotations

from stenograph.core import Fork, ForkReason, Turn, Value
from stenograph.session.canonical import marks
from stenograph.session.match import Chained, Match
from stenograph.session.tree import Tree

AGAIN = frozenset({ForkReason.BRANCHED, ForkReason.RESAMPLED})
"""The caller has changed nothing, and goes on from a place from which it went on before."""


def foremost(of_caller: Fork | None, of_template: Fork | None) -> Fork | None:
    """What the caller changed would have forked under any template. What it only did again would not have, where the
    template had not kept the path either."""
    if of_template is None or (of_caller is not None and of_caller.reason not in AGAIN):
        return of_caller
    return of_template


def fork_of(tree: Tree, asked: Chained, matched: Match) -> Fork | None:
    """None: the request goes on where it could be expected to, or is the session's first."""
    changed = _changed_key(tree, asked, matched)
    if changed is not None:
        return changed
    if matched.contradicted is not None and matched.contradicted >= matched.shared:
        return Fork(ForkReason.ASSISTANT_EDITED, matched.contradicted, "its reasoning was changed")
    if not tree.calls:
        return None
    said = _said(tree, asked, matched)
    return _nothing_new(tree, asked, matched, said) if said.known == said.end else _new(tree, asked, matched, said)


# ---------------------------------------------------------------------------------------------- before every message


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
    return tree.choices(same[-1])[:1] if same else []


# ------------------------------------------------------------------------------------------------------- the messages


class _Said(Value):
    """How much of the request stands in the record."""

    end: int
    """How many messages it has, without a trailing reply: what is only begun says nothing of the past."""
    known: int
    """Index of the first one that no recorded conversation has in this place; `end` where there is none."""


def _said(tree: Tree, asked: Chained, matched: Match) -> _Said:
    end = len(asked.links) - (asked.conversation.messages[-1].role == "assistant")
    places = range(matched.shared, end)
    return _Said(end, next((place for place in places if tree.seen_at(asked.links[place]) is None), end))


def _nothing_new(tree: Tree, asked: Chained, matched: Match, said: _Said) -> Fork | None:
    last = len(asked.links) - 1
    if _was_asked(tree, asked, matched, last) or (said.end and _was_asked(tree, asked, matched, said.end - 1)):
        return Fork(ForkReason.RESAMPLED, last, "the same conversation was asked before")
    if matched.after is not None and not tree.continuations(matched.after):
        return None
    if matched.after is not None and (matched.shared == said.end or tree.asked_at(asked.links[said.end - 1])):
        return _branched(tree, matched, matched.shared)  # it may have been asked behind a sibling that said the same
    if said.end == 0:
        return Fork(ForkReason.NEW_CONVERSATION, 0)
    return Fork(ForkReason.HISTORY_SHORTENED, said.end, "it ends where a recorded conversation went on")


def _was_asked(tree: Tree, asked: Chained, matched: Match, place: int) -> bool:
    """Behind the very turn that is meant: siblings that said the same are each gone on from for the first time."""
    return any(call.after == matched.after for call in tree.asked_at(asked.links[place]))


def _new(tree: Tree, asked: Chained, matched: Match, said: _Said) -> Fork | None:
    """Its message at `said.known` is none of the recorded ones."""
    known = said.known
    moved = _moved(tree, asked, said)
    if moved is not None and moved > 0:
        return Fork(ForkReason.HISTORY_SHORTENED, known, "later messages are the recorded ones, moved up")
    replaced = known > 0 and asked.conversation.messages[known].role == "assistant"
    edited = replaced and bool(tree.asked_at(asked.links[known - 1]))
    if moved is not None:
        return Fork(ForkReason.ASSISTANT_EDITED if edited else ForkReason.HISTORY_EDITED, known)
    if known == matched.shared and not edited:
        return _branched(tree, matched, known) if known else Fork(ForkReason.NEW_CONVERSATION, 0)
    if _is_shorter(tree, asked, said):
        return Fork(ForkReason.HISTORY_SHORTENED, known, "the recorded conversation was longer")
    if edited:
        return Fork(ForkReason.ASSISTANT_EDITED, known)
    if matched.after is not None:
        return _branched(tree, matched, known)
    return Fork(ForkReason.HISTORY_EDITED, known)


def _branched(tree: Tree, matched: Match, at: int) -> Fork | None:
    if not tree.continuations(matched.after):
        return None
    return Fork(ForkReason.BRANCHED, at, f"{matched.after} was continued before")


def _moved(tree: Tree, asked: Chained, said: _Said) -> int | None:
    """How far up the last recorded reply moved that comes again behind the divergence; None: none comes again."""
    for place in reversed(range(said.known, said.end)):
        is_reply = asked.conversation.messages[place].role == "assistant"
        if is_reply and (places := tree.reply_indexes(asked.marks[place])):
            return places[-1] - place
    return None


def _is_shorter(tree: Tree, asked: Chained, said: _Said) -> bool:
    """Than the longest recorded conversation that begins in the same way, and does not go on with its messages."""
    longest = tree.longest_through(asked.links[said.known - 1], said.known - 1)
    if longest is None or said.end >= longest.reply_index:
        return False
    following = said.known + 1
    recorded = marks([*tree.messages(longest.after), *longest.messages])
    return following >= said.end or recorded[following] != asked.marks[following]
