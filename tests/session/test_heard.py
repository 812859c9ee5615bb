"""Hashes that are remembered are the hashes that would be made."""

from __future__ import annotations

from collections.abc import Iterable

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import example, given

from stenograph.core import JSON, Conversation, Message, ToolCall
from stenograph.session import match
from stenograph.session.canonical import marks
from stenograph.session.heard import CONVERSATIONS, Heard
from stenograph.session.match import chained


def calling(value: JSON) -> Message:
    return Message("assistant", tool_calls=(ToolCall("a", "f", {"x": value}), ToolCall("b", "f", {})))


MESSAGES = [
    Message("user", "Hello"),
    Message("user", "Hello "),
    Message("assistant", "Hello"),
    Message("assistant", "Hello ", reasoning="Why?"),
    Message("tool", "1", tool_call_id="a"),
    Message("tool", "1", tool_call_id="b"),
    *map(calling, (1, 1.0, True, [1], [True], "1")),
]
CONVERSATIONS_ASKED = st.lists(st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=5))


@given(CONVERSATIONS_ASKED)
@example([[calling(1), MESSAGES[0]], [calling(True), MESSAGES[0]], [calling(1), MESSAGES[0]]])
@example([[calling(1)], [calling(1), MESSAGES[5]], [MESSAGES[0], MESSAGES[5]]])
def test_what_was_heard_before_makes_no_difference(asked: list[list[Message]]) -> None:
    heard = Heard()
    for messages in asked:
        conversation = Conversation(tuple(messages), ({"type": "function"},), {"thinking": True})
        assert msgspec.json.encode(heard.chained(conversation)) == msgspec.json.encode(chained(conversation))
        assert len(heard.latest) <= CONVERSATIONS


def test_what_is_repeated_is_not_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Message] = []

    def noted(messages: Iterable[Message], behind: Message | None = None) -> list[str]:
        hashed.extend(messages := tuple(messages))
        return marks(messages, behind)

    monkeypatch.setattr(match, "marks", noted)
    heard = Heard()
    for end in range(1, len(MESSAGES)):
        heard.chained(Conversation(tuple(MESSAGES[:end])))
        heard.chained(Conversation((MESSAGES[-1], *MESSAGES[:end])))
    assert len(hashed) == 2 * len(MESSAGES) - 1


def test_what_is_repeated_is_kept_once() -> None:
    """As the very objects: of a session of N tokens, O(N) is remembered."""
    heard, messages = Heard(), [Message("user", f"{number}") for number in range(9)]
    for end in range(1, len(messages)):
        again = msgspec.json.decode(msgspec.json.encode(messages[:end]), type=tuple[Message, ...])
        heard.chained(Conversation(again))
    [latest] = heard.latest
    first = heard.chained(Conversation(tuple(messages))).conversation.messages
    assert all(ours is theirs for ours, theirs in zip(latest.conversation.messages, first, strict=False))
