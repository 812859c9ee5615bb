"""Which turn does this request continue? Decided at once, from the request's own messages and the session's tree.

The messages are walked a single time, extending a chained hash. (A trailing assistant message is a reply that the
caller has begun: it is context, whoever said it first.) At each assistant message the hash names the turns
that said it in that very conversation; the deepest one that was asked under the same tools and template arguments is
what the new tokens will continue.
"""

from __future__ import annotations

from collections.abc import Sequence

from stenograph.core import Conversation, Message, Note, NoteKind, Turn, Value
from stenograph.session.canonical import START, arguments_hash, chain, marks, tools_hash
from stenograph.session.tree import Tree


class Chained(Value):
    """A conversation with the hashes by which it is looked up."""

    conversation: Conversation
    marks: tuple[str, ...]
    """Of each message on its own, the hash of its canonical form."""
    links: tuple[str, ...]
    """Of everything up to and with each message."""
    tools_hash: str
    arguments_hash: str

    def same_key(self, turn: Turn) -> bool:
        return (turn.call.tools_hash, turn.call.arguments_hash) == (self.tools_hash, self.arguments_hash)


class Match(Value):
    after: str | None
    """The deepest turn that the request continues, under whatever tools."""
    shared: int
    """How many messages it covers."""
    anchor: str | None
    """The deepest one under the same tools and template arguments: its tokens may be continued."""
    contradicted: int | None
    """Index of the first assistant message that is a recorded one but for its reasoning, which the caller changed."""
    notes: tuple[Note, ...]


def chained(conversation: Conversation, known: Chained | None = None, shared: int = 0) -> Chained:
    """`known`: one that begins with the same messages, `shared` of them."""
    old, new = conversation.messages[:shared], conversation.messages[shared:]
    before = known.marks[:shared] if known else ()
    links = known.links[:shared] if known else ()
    behind = next((message for message in reversed(old) if message.role == "assistant"), None)
    added = marks(new, behind)
    return Chained(
        conversation,
        (*before, *added),
        (*links, *chain(links[-1] if links else START, added)),
        tools_hash(conversation),
        arguments_hash(conversation),
    )


def match(tree: Tree, asked: Chained, *, strict: bool, named: frozenset[str] = frozenset()) -> Match:
    """`strict`: reasoning that the caller did not send back is not put back, so there is nothing to note of it.
    `named`: turns that are meant, of several that said the same."""
    walked = _walk(tree, asked, named)
    after, ambiguous = _choose(walked.deepest, asked)
    anchor, _ = _choose([turn for turn in walked.anchors if turn is after] or walked.anchors, asked)
    notes: dict[NoteKind, Note] = {}
    if asked.conversation.messages[-1].role == "assistant":
        notes[NoteKind.PREFILL] = Note(NoteKind.PREFILL)
    if ambiguous and after is not None:
        notes[NoteKind.AMBIGUOUS_MATCH] = Note(
            NoteKind.AMBIGUOUS_MATCH, f"several turns said this; {after.id} is taken"
        )
    for turn in tree.conversation(after.id if after else None):
        message = asked.conversation.messages[turn.call.reply_index]
        if message == turn.reply:
            continue
        notes |= {note.kind: note for note in _tolerances(turn, message, strict=strict)}
    return Match(
        after=after.id if after else None,
        shared=after.call.reply_index + 1 if after else 0,
        anchor=anchor.id if anchor else None,
        contradicted=walked.contradicted,
        notes=tuple(notes.values()),
    )


class _Walked:
    def __init__(self) -> None:
        self.deepest: Sequence[Turn] = ()
        """All that said the deepest known reply; which of them is meant is decided last."""
        self.anchors: Sequence[Turn] = ()
        self.contradicted: int | None = None


def _walk(tree: Tree, asked: Chained, named: frozenset[str]) -> _Walked:
    walked, alive = _Walked(), set[str | None]({None})
    messages = asked.conversation.messages
    for index in range(len(messages) - 1):
        candidates = tree.ends_at(asked.links[index]) if messages[index].role == "assistant" else ()
        if not candidates:
            continue
        reachable = [turn for turn in candidates if turn.call.after in alive]
        fitting = [turn for turn in reachable if _reasoning_fits(turn, messages[index])]
        if fitting:
            walked.deepest = _meant(fitting, messages[index], named)
            alive.update(turn.id for turn in walked.deepest)
            walked.anchors = [turn for turn in walked.deepest if asked.same_key(turn)] or walked.anchors
        elif reachable and walked.contradicted is None:
            walked.contradicted = index
    return walked


def _meant(fitting: Sequence[Turn], message: Message, named: frozenset[str]) -> Sequence[Turn]:
    """Siblings may say the same: their own ids, or an echoed call id, tell which one is meant."""
    if len(fitting) == 1:
        return fitting
    echoed = {call.id for call in message.tool_calls}
    by_name = [turn for turn in fitting if turn.id in named]
    return by_name or [turn for turn in fitting if any(call.id in echoed for call in turn.reply.tool_calls)] or fitting


def _choose(turns: Sequence[Turn], asked: Chained) -> tuple[Turn | None, bool]:
    """Under the same tools before others, then the latest. Second: it was a guess."""
    best = [turn for turn in turns if asked.same_key(turn)] or list(turns)
    return (best[-1], len(best) > 1) if best else (None, False)


def _reasoning_fits(turn: Turn, message: Message) -> bool:
    """Reasoning is compared only where the caller sent some."""
    return message.reasoning is None or message.reasoning.strip() == (turn.reply.reasoning or "").strip()


def _tolerances(turn: Turn, message: Message, *, strict: bool) -> list[Note]:
    notes = []
    if not strict and message.reasoning is None and (turn.reply.reasoning or "").strip():
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
