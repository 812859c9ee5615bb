"""Which turn does this request continue? Decided at once, from the request's own messages and the session's tree.

The messages are walked a single time, extending a chained hash. (A trailing assistant message is a reply that the
caller has begun: it is context, whoever said it first.) At each assistant message the hash names the turns
that said it in that very conversation; the deepest one that was asked under the same tools and template arguments is
what the new tokens will continue.
"""

from __future__ import annotations

from collections.abc import Sequence

from stenograph.core import Conversation, Message, Note, NoteKind, Turn, Value
from stenograph.session.canonical import START, arguments_hash, chain, message_hashes, tools_hash
from stenograph.session.tree import Tree


class Chained(Value):
    """A conversation with the hashes by which it is looked up."""

    conversation: Conversation
    hashes: tuple[str, ...]
    """Of each message on its own."""
    links: tuple[str, ...]
    """Of everything up to and with each message."""
    tools_hash: str
    arguments_hash: str

    def same_key(self, turn: Turn) -> bool:
        return (turn.call.tools_hash, turn.call.arguments_hash) == (self.tools_hash, self.arguments_hash)


class Match(Value):
    sources: tuple[str | None, ...]
    """For each message of the request the turn that said it; None for what was not sampled here."""
    after: str | None
    """The deepest turn that the request continues, under whatever tools."""
    shared: int
    """How many messages it covers."""
    anchor: str | None
    """The deepest one under the same tools and template arguments: its tokens may be continued."""
    contradicted: int | None
    """Index of the first assistant message that is a recorded one but for its reasoning, which the caller changed."""
    notes: tuple[Note, ...]


def chained(conversation: Conversation) -> Chained:
    hashes = message_hashes(conversation.messages)
    return Chained(
        conversation,
        tuple(hashes),
        tuple(chain(START, hashes)),
        tools_hash(conversation),
        arguments_hash(conversation),
    )


def match(tree: Tree, asked: Chained) -> Match:
    sources: list[str | None] = []
    notes: dict[NoteKind, Note] = {}
    matched = _Deepest()
    for index, (message, link) in enumerate(zip(asked.conversation.messages, asked.links, strict=True)):
        sources.append(None)
        begun = index == len(asked.links) - 1
        candidates = tree.ends_at(link) if message.role == "assistant" and not begun else ()
        reachable = [turn for turn in candidates if turn.call.after is None or turn.call.after in sources]
        fitting = [turn for turn in reachable if _reasoning_fits(turn, message)]
        if fitting:
            turn, ambiguous = _choose(fitting, message, asked)
            sources[index] = turn.id
            matched.take(turn, index, asked)
            notes |= {note.kind: note for note in _tolerances(turn, message, ambiguous)}
        elif reachable and matched.contradicted is None:
            matched.contradicted = index
    return Match(
        tuple(sources), matched.after, matched.shared, matched.anchor, matched.contradicted, tuple(notes.values())
    )


class _Deepest:
    def __init__(self) -> None:
        self.after: str | None = None
        self.shared = 0
        self.anchor: str | None = None
        self.contradicted: int | None = None

    def take(self, turn: Turn, index: int, asked: Chained) -> None:
        self.after, self.shared = turn.id, index + 1
        if asked.same_key(turn):
            self.anchor = turn.id


def _reasoning_fits(turn: Turn, message: Message) -> bool:
    """Reasoning is compared only where the caller sent some."""
    return message.reasoning is None or message.reasoning.strip() == (turn.reply.reasoning or "").strip()


def _choose(fitting: Sequence[Turn], message: Message, asked: Chained) -> tuple[Turn, bool]:
    """Siblings may say the same. An echoed call id decides, else the same tools, else the latest. Second: a guess."""
    echoed = {call.id for call in message.tool_calls}
    by_id = [turn for turn in fitting if any(call.id in echoed for call in turn.reply.tool_calls)]
    same_key = [turn for turn in by_id or fitting if asked.same_key(turn)]
    best = same_key or by_id or fitting
    return best[-1], len(best) > 1


def _tolerances(turn: Turn, message: Message, ambiguous: bool) -> list[Note]:
    notes = []
    if ambiguous:
        notes.append(Note(NoteKind.AMBIGUOUS_MATCH, f"several turns said this; {turn.id}, the latest, is taken"))
    if message.reasoning is None and (turn.reply.reasoning or "").strip():
        notes.append(Note(NoteKind.REASONING_RESTORED, f"of {turn.id}"))
    if (message.content or "") != (turn.reply.content or ""):
        notes.append(Note(NoteKind.WHITESPACE_IGNORED, f"around the text of {turn.id}"))
    if any(
        _reformatted(ours.text, theirs.text)
        for ours, theirs in zip(turn.reply.tool_calls, message.tool_calls, strict=True)
    ):
        notes.append(Note(NoteKind.ARGUMENTS_REFORMATTED, f"of {turn.id}"))
    return notes


def _reformatted(ours: str | None, theirs: str | None) -> bool:
    return ours is not None and theirs is not None and ours != theirs
