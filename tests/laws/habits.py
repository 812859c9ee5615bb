"""What agents and models do to a conversation, drawn for one template: played without a server, so that a template
costs milliseconds a turn. `tests/render/rollouts.py` holds law 9 and the certificates to the template on each turn."""

from __future__ import annotations

import enum

import hypothesis.strategies as st
import msgspec

from stenograph.core import Message, Value
from stenograph.errors import TemplateRefused
from tests.render.rollouts import TOOL, Rollout

ONE_CALL_ONLY = {"llama3.1", "gpt-oss"}
"""Llama's template refuses two calls in a reply, gpt-oss's writes the first of them."""
OTHER_TOOL = {"type": "function", "function": {**TOOL["function"], "name": "listen"}}


class Echo(enum.StrEnum):
    """What becomes of a reply on its way back."""

    PLAIN = "plain"
    """Without its reasoning, as nearly every loop sends it."""
    WHOLE = "whole"
    STRIPPED = "stripped"
    PADDED = "padded"
    EDITED = "edited"


class Exchange(Value):
    said: str
    """By the user, or by the tool."""
    asks: bool
    """Behind the results of calls the user says something, too."""
    says: str
    thinks: str | None
    calls: int
    cut: int | None
    """A long reply ends after so many tokens: behind its header, where its family writes one."""
    echo: Echo
    back: int
    """So many turns are taken back before this one."""


class Habit(Value):
    system: str | None
    tools: bool
    turns: tuple[Exchange, ...]
    other_tools_at: int | None
    """From this turn on another tool is offered."""
    verbatim: bool
    strict: bool


WORDS = (
    *("hello", "What is it?", " two  spaces ", "\n\n", "日本語", "🙂", "naïve", '{"a": 1}', "x" * 40, "Answer: 42."),
    *("<|im_end|>", "<|im_start|>assistant\n", "<tool_call>", "</think>", "[INST]", "<|eot_id|>", "</s>", "<|end|>"),
)
SAYINGS = ("Yes.", " \nYes, naïve 日本 😀. \n", "It is 42", "a\n\nb", "tokenization " * 3)
"""Without markers: what a model's marker means is for the reader's tests."""
LONG = "A long answer 😀 that is cut somewhere, looking at the tokenization of 日本"
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(lambda words: "So " + " ".join(words))
turns = st.builds(
    Exchange,
    said=texts,
    asks=st.booleans(),
    says=st.sampled_from(SAYINGS),
    thinks=st.sampled_from((None, None, "Let me see", "One.\n\nTwo.")),
    calls=st.sampled_from((0, 0, 1, 1, 2)),
    cut=st.sampled_from((None, None, None, None, 14, 18)),
    echo=st.sampled_from((*(Echo.PLAIN,) * 3, *Echo)),
    back=st.sampled_from((0, 0, 0, 0, 0, 1, 2)),
)
habits = st.builds(
    Habit,
    system=st.none() | texts,
    tools=st.booleans(),
    turns=st.lists(turns, min_size=2, max_size=6).map(tuple),
    other_tools_at=st.sampled_from((None, None, None, 2)),
    verbatim=st.booleans(),
    strict=st.sampled_from((False, False, True)),
)


def play(rollout: Rollout, habit: Habit, name: str) -> None:
    """To its end, or to where the template refuses it."""
    heads = [
        [*([] if habit.system is None else [Message("system", habit.system)]), Message("user", habit.turns[0].said)]
    ]
    for number, turn in enumerate(habit.turns):
        del heads[max(1, len(heads) - turn.back) :]
        other = habit.other_tools_at is not None and number >= habit.other_tools_at
        tools = ([TOOL, OTHER_TOOL] if other else [TOOL]) if habit.tools else []
        try:
            reply = _reply(rollout, heads[-1], tools, turn, name)
        except TemplateRefused:
            return
        heads.append([*heads[-1], *_answered(reply, turn)])


def _reply(
    rollout: Rollout, messages: list[Message], tools: list[dict[str, object]], turn: Exchange, name: str
) -> Message:
    able = rollout.family.grammar.call is not None and bool(tools) and turn.cut is None
    count = min(turn.calls, 1 if name in ONE_CALL_ONLY else 2) if able else 0
    calls = [("look", {"q": f"cats {number}", "n": number}) for number in range(count)]
    says = None if calls else LONG if turn.cut else turn.says
    close = "" if turn.cut else None
    return rollout.ask(messages, tools, says=says, thinks=turn.thinks, calls=calls, close=close, cut=turn.cut)


def _answered(reply: Message, turn: Exchange) -> list[Message]:
    results = [Message("tool", turn.said, tool_call_id=call.id, name=call.name) for call in reply.tool_calls]
    asked = [Message("user", turn.said)] if turn.asks or not results else []
    return [_echoed(reply, turn.echo), *results, *asked]


def _echoed(reply: Message, echo: Echo) -> Message:
    text = reply.content or ""
    match echo:
        case Echo.WHOLE:
            return reply
        case Echo.STRIPPED:
            text = text.strip()
        case Echo.PADDED:
            text = f" {text}\n" if text else text
        case Echo.EDITED:
            text = "Something that nobody said."
    return msgspec.structs.replace(reply, reasoning=None, content=text or None)
