"""What a session was asked of late, hashed: an agent sends its history again with every call, and what it repeats to
the letter need not be hashed again."""

from __future__ import annotations

from itertools import takewhile

import msgspec

from stenograph.core import Conversation, Message
from stenograph.session.match import Chained, chained

CONVERSATIONS = 4
"""Sub-agents speak between the calls of their parent."""


class Heard:
    def __init__(self) -> None:
        self.latest: list[Chained] = []
        """Each asked later than those before it, and none the beginning of another."""

    def chained(self, conversation: Conversation) -> Chained:
        messages = conversation.messages
        shared, known = max(
            ((_shared(one.conversation.messages, messages), one) for one in self.latest),
            key=lambda found: found[0],
            default=(0, None),
        )
        if known is not None:
            own = (*known.conversation.messages[:shared], *messages[shared:])
            conversation = msgspec.structs.replace(conversation, messages=own)
            if shared == len(known.links):
                self.latest.remove(known)
        asked = chained(conversation, known, shared)
        self.latest = [*self.latest, asked][-CONVERSATIONS:]
        return asked


def _shared(ours: tuple[Message, ...], theirs: tuple[Message, ...]) -> int:
    """How many messages both begin with."""
    return sum(1 for _ in takewhile(_same, zip(ours, theirs, strict=False)))


def _same(pair: tuple[Message, Message]) -> bool:
    """To the letter: of values, true would equal 1."""
    ours, theirs = pair
    return ours == theirs and (not ours.tool_calls or _spelt(ours) == _spelt(theirs))


def _spelt(message: Message) -> bytes:
    return msgspec.json.encode(message.tool_calls)
