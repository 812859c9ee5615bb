"""A session's tree, cut into branches: one a leaf, root to leaf."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from stenograph.core import Call, Fork, ForkReason, Message, Note, Truncated, Turn, Value

_CallId: TypeAlias = str


class Branch(Value):
    index: int
    """Its place among all branches of the session: by the commit order of their leaves."""
    turns: tuple[Turn, ...]
    """Root to leaf; never empty."""
    main: bool
    """It holds the latest turn of the session's first conversation, side calls aside. True of exactly one branch."""
    side: bool
    """Its conversation is one call, beside a longer one with other tools: agents ask for titles, check topics, and see
    whether anybody answers, mostly with none. A sub-agent of one call that has the same tools is none."""
    fork: Fork | None
    """What made this a branch of its own: the first fork among the turns that no branch before it holds, the main
    branch being before all others. So each fork shows once, on the branch that it began."""

    @property
    def leaf(self) -> Turn:
        return self.turns[-1]

    @property
    def notes(self) -> tuple[Note, ...]:
        return tuple(note for turn in self.turns for note in (*turn.call.notes, *turn.notes))

    @property
    def versions(self) -> tuple[str, ...]:
        return weight_versions(self.turns)

    @property
    def truncated(self) -> Truncated | None:
        if self.leaf.finish_reason == "abort":
            return "aborted"
        return self.leaf.limit or "length" if self.leaf.finish_reason == "length" else None


def branches(turns: Sequence[Turn]) -> tuple[Branch, ...]:
    """`turns` in commit order, so that parents come before children."""
    paths = _paths(turns)
    if not paths:
        return ()
    conversations = _conversations(turns)
    side = _side(turns, conversations)
    latest = _latest_turn_of_first_conversation(turns, conversations, side)
    main = next(index for index, path in enumerate(paths) if any(turn.id == latest for turn in path))
    forks = _forks(paths, main)
    return tuple(
        Branch(index, path, index == main, conversations[path[-1].call.id] in side, forks[index])
        for index, path in enumerate(paths)
    )


def main_first(all_branches: Sequence[Branch]) -> list[Branch]:
    """The order in which branches claim the turns that they share."""
    return sorted(all_branches, key=lambda branch: not branch.main)


def weight_versions(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Each once, in the order of first use. Tokens of an unknown version count for none."""
    versions = (part.weight_version for turn in turns for part in turn.parts if len(part.ids))
    return tuple(dict.fromkeys(version for version in versions if version is not None))


def _paths(turns: Sequence[Turn]) -> list[tuple[Turn, ...]]:
    by_id = {turn.id: turn for turn in turns}
    parents = {turn.call.parent for turn in turns}
    return [tuple(_climb(turn, by_id))[::-1] for turn in turns if turn.id not in parents]


def _climb(turn: Turn, by_id: Mapping[str, Turn]) -> Iterator[Turn]:
    yield turn
    while turn.call.parent is not None:
        turn = by_id[turn.call.parent]
        yield turn


def _forks(paths: Sequence[tuple[Turn, ...]], main: int) -> dict[int, Fork | None]:
    seen: set[str] = set()
    forks: dict[int, Fork | None] = {}
    for index in sorted(range(len(paths)), key=lambda index: index != main):
        own = [turn for turn in paths[index] if turn.id not in seen]
        forks[index] = next((turn.call.fork for turn in own if turn.call.fork), None)
        seen.update(turn.id for turn in own)
    return forks


# ---------------------------------------------------------------------------------------------------- conversations


def _side(turns: Sequence[Turn], conversations: Mapping[_CallId, _CallId]) -> frozenset[_CallId]:
    """The conversations of one call that offer other tools than the longest one does."""
    lengths = Counter(conversations.values())
    longest, calls = lengths.most_common(1)[0]
    tools = {turn.call.id: turn.call.tools_hash for turn in turns}
    return frozenset(one for one, length in lengths.items() if length == 1 < calls and tools[one] != tools[longest])


def _latest_turn_of_first_conversation(
    turns: Sequence[Turn], conversations: Mapping[_CallId, _CallId], side: frozenset[_CallId]
) -> str:
    """Choices of one call are committed together, so none is the latest: the first of them stands for the call."""
    first = next(conversation for conversation in conversations.values() if conversation not in side)
    call = next(turn.call.id for turn in reversed(turns) if conversations[turn.call.id] == first)
    return min((turn for turn in turns if turn.call.id == call), key=lambda turn: turn.choice).id


def _conversations(turns: Sequence[Turn]) -> dict[_CallId, _CallId]:
    """Each call's conversation, named by the call that began it.

    What the caller's messages continue decides, not what the prompt could continue: a turn whose template rewrote
    the history has a prompt of its own, and is still the same talk.
    """
    of: dict[_CallId, _CallId] = {}
    call_of = {turn.id: turn.call.id for turn in turns}
    openings: dict[bytes, _CallId] = {}
    for call in {turn.call.id: turn.call for turn in turns}.values():
        continues = call.after or call.parent
        of[call.id] = of[call_of[continues]] if continues else _opened(call, openings, turns[0].call.id)
    return of


def _opened(call: Call, openings: dict[bytes, _CallId], first: _CallId) -> _CallId:
    """The conversation of a call that continues no turn: a new one, or, where its fork says that it shares messages
    with an earlier one (asked again, compacted down to the system prompt), the one that it shares the most with."""
    prefixes = list(_prefixes(call.messages))
    if call.fork is None or call.fork.reason is ForkReason.NEW_CONVERSATION:
        conversation = call.id
    else:
        conversation = next((openings[prefix] for prefix in reversed(prefixes) if prefix in openings), first)
    for prefix in prefixes:
        openings.setdefault(prefix, conversation)
    return conversation


def _prefixes(messages: Sequence[Message]) -> Iterator[bytes]:
    """A digest for each beginning of the messages, the shortest first."""
    digest = hashlib.sha256()
    for message in messages:
        digest.update(msgspec.json.encode(message))
        yield digest.digest()
