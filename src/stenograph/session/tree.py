"""A session's record: turns that are added and never changed (law 3), and the indexes by which they are found.

Two links lead back from a call. `parent` is exact: the turn whose tokens its context continues. `after` is what the
caller meant: the turn whose reply its messages follow. They differ where the prompt could not be continued.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stenograph.core import Call, Ids, Message, Turn, Value
from stenograph.session.canonical import START, chain, marks


class Seen(Value):
    """A place in a recorded conversation: everything up to and with one message."""

    call: Call
    index: int
    """Of the message, from the beginning of the conversation."""


class Tree:
    def __init__(self) -> None:
        self.turns: dict[str, Turn] = {}
        """In the order in which they were committed."""
        self.calls: dict[str, Call] = {}
        self._ends: dict[str, list[Turn]] = {}
        """By the chained hash of a conversation up to and with the turn's reply."""
        self._links: dict[str, str] = {}
        """Turn id to that hash."""
        self._own_links: dict[str, Sequence[str]] = {}
        """Call id to the chained hashes at each of its own messages."""
        self._prefixes: dict[str, Seen] = {}
        """By the chained hash of every prefix that was ever asked or answered."""
        self._asked: dict[str, list[Call]] = {}
        """By the chained hash of the whole conversation of a call."""
        self._replies: dict[str, list[int]] = {}
        """By the hash of a reply on its own: at which index it was said."""
        self._continued: dict[str | None, int] = {}
        """How many calls came after a turn; None: at the beginning."""
        self._choices: dict[str, list[Turn]] = {}
        """By call id."""
        self._children: dict[str | None, list[Call]] = {}
        """By the turn whose tokens their context continues; None: at the root."""
        self._by_body: dict[str, Call] = {}
        self._by_key: dict[str, Call] = {}
        self.tokens = 0
        """All that are kept: each context once, each sampled token once."""
        self.sampled_tokens = 0

    # -- growing -------------------------------------------------------------------------------------------

    def add(self, turns: Sequence[Turn]) -> None:
        """All choices of one call, at once."""
        call = turns[0].call
        self._check(call, turns)
        behind = None if call.after is None else self.turns[call.after].reply
        links = chain(self._start_of(call), marks(call.messages, behind))
        for place, link in enumerate(links):
            self._prefixes.setdefault(link, Seen(call, call.shared + place))
        asked = links[-1] if links else self._start_of(call)
        self._asked.setdefault(asked, []).append(call)
        self._own_links[call.id] = links
        self._continued[call.after] = self._continued.get(call.after, 0) + 1
        self.calls[call.id] = call
        self._by_body[call.body_hash] = call
        if call.idempotency_key is not None:
            self._by_key[call.idempotency_key] = call
        self.tokens += len(call.context)
        self._choices[call.id] = list(turns)
        self._children.setdefault(call.parent, []).append(call)
        for turn in turns:
            self._add_turn(turn, asked)

    def _add_turn(self, turn: Turn, asked: str) -> None:
        [reply] = marks([turn.reply])
        [link] = chain(asked, [reply])
        index = turn.call.shared + len(turn.call.messages)
        self.turns[turn.id] = turn
        self.tokens += turn.sampled_tokens
        self.sampled_tokens += turn.sampled_tokens
        self._links[turn.id] = link
        self._ends.setdefault(link, []).append(turn)
        self._prefixes.setdefault(link, Seen(turn.call, index))
        self._replies.setdefault(reply, []).append(index)

    def _check(self, call: Call, turns: Sequence[Turn]) -> None:
        known = [turn.id for turn in turns if turn.id in self.turns]
        missing = [id for id in (call.parent, call.after) if id is not None and id not in self.turns]
        if known or missing or call.id in self.calls:
            raise ValueError(f"call {call.id} cannot be added: known turns {known}, missing turns {missing}")
        if any(turn.call is not call for turn in turns):
            raise ValueError(f"the turns of call {call.id} do not share it")

    def _start_of(self, call: Call) -> str:
        return START if call.after is None else self._links[call.after]

    # -- finding -------------------------------------------------------------------------------------------

    def ends_at(self, link: str) -> Sequence[Turn]:
        """The turns whose conversation, with the reply, has this hash; oldest first."""
        return self._ends.get(link, ())

    def asked_at(self, link: str) -> Sequence[Call]:
        """The calls whose conversation was this one."""
        return self._asked.get(link, ())

    def seen_at(self, link: str) -> Seen | None:
        return self._prefixes.get(link)

    def longest_through(self, link: str, index: int) -> Call | None:
        """Of the calls whose conversation has this hash at this message, the one that asked the most."""
        longest: Call | None = None
        for call in self.calls.values():
            further = longest is None or call.reply_index > longest.reply_index
            if further and call.reply_index > index and self._link_at(call, index) == link:
                longest = call
        return longest

    def _link_at(self, call: Call, index: int) -> str:
        """The chained hash at a message of the conversation that a call asked."""
        while call.after is not None and index < call.shared - 1:
            call = self.turns[call.after].call
        if call.after is None or index >= call.shared:
            return self._own_links[call.id][index - call.shared]
        return self._links[call.after]

    def reply_indexes(self, mark: str) -> Sequence[int]:
        """At which places of its conversations a reply was said."""
        return self._replies.get(mark, ())

    def continuations(self, turn_id: str | None) -> int:
        return self._continued.get(turn_id, 0)

    def children(self, turn_id: str | None) -> Sequence[Call]:
        """The calls whose context begins right behind a turn's tokens; None: at the root. Oldest first."""
        return self._children.get(turn_id, ())

    def latest_with_body(self, body_hash: str) -> Call | None:
        return self._by_body.get(body_hash)

    def with_key(self, idempotency_key: str) -> Call | None:
        return self._by_key.get(idempotency_key)

    def choices(self, call: Call) -> list[Turn]:
        return self._choices[call.id]

    # -- reading -------------------------------------------------------------------------------------------

    def path(self, turn_id: str | None) -> list[Turn]:
        """By tokens, root first."""
        return [*reversed(list(self._back(turn_id, by_tokens=True)))]

    def conversation(self, turn_id: str | None) -> list[Turn]:
        """By meaning: the turns whose replies the caller's messages followed, first to last."""
        return [*reversed(list(self._back(turn_id, by_tokens=False)))]

    def messages(self, turn_id: str | None) -> list[Message]:
        """The conversation up to and with a turn's reply."""
        messages: list[Message] = []
        for turn in self.conversation(turn_id):
            messages += [*turn.call.messages, turn.reply]
        return messages

    def ids(self, turn_id: str | None) -> Ids:
        """All tokens from the root to the end of a turn."""
        pieces = [piece for turn in self.path(turn_id) for piece in (turn.call.context, turn.sampled)]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int32)

    def _back(self, turn_id: str | None, *, by_tokens: bool) -> Iterator[Turn]:
        while turn_id is not None:
            turn = self.turns[turn_id]
            yield turn
            turn_id = turn.call.parent if by_tokens else turn.call.after
