"""What a template makes of single messages: it writes them, drops them without a word, or refuses them in its own."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Literal, TypeAlias

from stenograph.core import Conversation, Message, ToolCall, Value
from stenograph.errors import TemplateRefused
from stenograph.render.renderer import Renderer
from stenograph.render.telltales import TOOLS

DAYS = (datetime.datetime(2024, 2, 29, 23, 59), datetime.datetime(2031, 10, 5, 0, 1))
"""Two times that no way of printing a date confuses."""
ASKED, ANSWERED = Message("user", "zqasked"), Message("assistant", "zqanswered")
TOLD = "zqtold"
THOUGHT = "zqthought"
Kind: TypeAlias = Literal[
    "system", "later_system", "developer", "user_twice", "assistant_first",
    "tools", "tool_call", "two_calls", "tool_result", "user_behind_result", "other_call_ids",
]  # fmt: skip


class Take(Value):
    what: Kind
    verdict: Literal["written", "dropped", "refused"]
    words: str | None = None
    """The template's own, where it refuses."""


class Reasoning(Value):
    """Whether past reasoning is written: as far as a template writes any."""

    last: bool
    """Of a reply that nothing follows."""
    in_tool_loop: bool
    """Of a call that its result follows."""
    behind_user: bool
    """Of a reply that a user message follows."""

    @property
    def ever(self) -> bool:
        return self.last or self.in_tool_loop or self.behind_user


def takes(renderer: Renderer) -> tuple[Take, ...]:
    return tuple(_take(renderer, *trial) for trial in _trials())


def _trials() -> list[tuple[Kind, Sequence[Message], tuple[str, ...]]]:
    """What is tried, in which conversation, and the texts that have to come out."""
    told, one, two = (TOLD,), _calls("zqcallnr1"), _calls("zqcallnr1", "zqcallnr2")
    results = [_result(call) for call in two.tool_calls]
    return [
        ("system", [Message("system", TOLD), ASKED], told),
        ("later_system", [ASKED, ANSWERED, Message("system", TOLD), ASKED], told),
        ("developer", [Message("developer", TOLD), ASKED], told),
        ("user_twice", [ASKED, Message("user", TOLD)], ("zqasked", TOLD)),
        ("assistant_first", [Message("assistant", TOLD), ASKED], told),
        ("tools", [ASKED], ("zqone", "zqtwo")),
        ("tool_call", [ASKED, one, results[0]], ("zqquery0",)),
        ("two_calls", [ASKED, two, *results], ("zqquery0", "zqquery1")),
        ("tool_result", [ASKED, one, results[0]], ("zqresult of zqcallnr1",)),
        ("user_behind_result", [ASKED, one, results[0], Message("user", TOLD)], told),
        ("other_call_ids", [ASKED, _calls("call_1"), _result(_calls("call_1").tool_calls[0])], ("zqquery0",)),
    ]


OF_TOOLS = frozenset({"tools", "tool_call", "two_calls", "tool_result", "user_behind_result", "other_call_ids"})


def _take(renderer: Renderer, what: Kind, messages: Sequence[Message], texts: tuple[str, ...]) -> Take:
    try:
        text = _write(renderer, messages, tools=what in OF_TOOLS)
    except TemplateRefused as refusal:
        return Take(what, "refused", own_words(refusal))
    return Take(what, "written" if all(one in text for one in texts) else "dropped")


def own_words(refusal: TemplateRefused) -> str:
    return refusal.message.partition(": ")[2]


def reasoning(renderer: Renderer) -> Reasoning:
    answered = Message("assistant", "zqanswered", THOUGHT)
    called = _calls("zqcallnr1", reasoning=THOUGHT)
    return Reasoning(
        last=_thought(renderer, [ASKED, answered], generate=False),
        in_tool_loop=_thought(renderer, [ASKED, called, _result(called.tool_calls[0])], tools=True),
        behind_user=_thought(renderer, [ASKED, answered, ASKED]),
    )


def tells_the_date(renderer: Renderer) -> bool:
    conversations = (([Message("system", TOLD), ASKED], False), ([ASKED], False), ([ASKED], True))
    return any(_dated(renderer, messages, tools=tools) for messages, tools in conversations)


def _dated(renderer: Renderer, messages: Sequence[Message], *, tools: bool) -> bool:
    try:
        return len({_write(renderer, messages, tools=tools, now=day) for day in DAYS}) > 1
    except TemplateRefused:
        return False


def _thought(renderer: Renderer, messages: Sequence[Message], *, tools: bool = False, generate: bool = True) -> bool:
    try:
        return THOUGHT in _write(renderer, messages, tools=tools, generate=generate)
    except TemplateRefused:
        return False


def _write(
    renderer: Renderer,
    messages: Sequence[Message],
    *,
    tools: bool = False,
    generate: bool = True,
    now: datetime.datetime = DAYS[0],
) -> str:
    conversation = renderer.relevant(Conversation((), TOOLS if tools else ()))
    return renderer.family(conversation).writer(conversation, now).write(messages, generate=generate)


def _calls(*ids: str, reasoning: str | None = None) -> Message:
    made = (ToolCall(id, "zqone", {"query": f"zqquery{place}"}) for place, id in enumerate(ids))
    return Message("assistant", None, reasoning, tuple(made))


def _result(call: ToolCall) -> Message:
    return Message("tool", f"zqresult of {call.id}", tool_call_id=call.id, name=call.name)
