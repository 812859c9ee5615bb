"""What agents do to their history (FIELD D), on every real template at hand: exact, faithful, or forked with a reason.

`Rollout.ask` holds law 9 on each turn. What is asserted here is which habits extend, and why the others fork.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
import pytest

from stenograph.core import Message
from stenograph.errors import TemplateRefused
from stenograph.render.renderer import Renderer
from tests.render.rollouts import TOOL, Rollout, renderer_of

REWROTE = "template_rewrote_history"
Habit = Callable[[Rollout], None]


@cache
def renderer_at(folder: Path) -> Renderer:
    return renderer_of(folder)


def user(text: str) -> Message:
    return Message("user", text)


def echo(reply: Message) -> Message:
    """As nearly every SDK loop sends it back: without reasoning."""
    return msgspec.structs.replace(reply, reasoning=None)


def result(reply: Message, place: int = 0, text: str = "found it") -> Message:
    call = reply.tool_calls[place]
    return Message("tool", text, tool_call_id=call.id, name=call.name)


def plain(rollout: Rollout) -> None:
    messages = [Message("system", "Be brief."), user("Hello")]
    for number in range(3):
        reply = rollout.ask(messages, says=f"Answer {number}: naïve 日本 😀.")
        messages += [echo(reply), user(f"Next {number}")]


def stripped(rollout: Rollout) -> None:
    messages = [user("Hello")]
    for number in range(3):
        reply = rollout.ask(messages, says=f"  Answer {number}. \n")
        messages += [msgspec.structs.replace(reply, content=(reply.content or "").strip()), user("Next")]


def reasoned(rollout: Rollout) -> None:
    messages = [user("Hello")]
    for number in range(3):
        reply = rollout.ask(messages, says=f"Answer {number}.", thinks=f"Let me see, {number}")
        messages += [echo(reply), user("Next")]


def truncated(rollout: Rollout) -> None:
    messages = [user("Hello")]
    for number in range(3):
        reply = rollout.ask(messages, says="A long answer 😀 that is cut somewhere", close="", cut=5 + 2 * number)
        messages += [echo(reply), user("Go on")]


def truncated_in_reasoning(rollout: Rollout) -> None:
    messages = [user("Hello")]
    for number in range(3):
        reply = rollout.ask(messages, says="Never said", thinks="some thought here", close="", cut=5 + 2 * number)
        messages += [echo(reply), user("Go on")]


def tool_loop(rollout: Rollout, thinks: str | None = None) -> None:
    messages = [Message("system", "Use tools."), user("Find")]
    for number in range(3):
        reply = rollout.ask(messages, [TOOL], calls=[("look", {"q": f"cats {number}", "n": number})], thinks=thinks)
        messages += [echo(reply), result(reply)]
    reply = rollout.ask(messages, [TOOL], says="Done.", thinks=thinks)
    rollout.ask([*messages, echo(reply), user("And?")], [TOOL], says="Yes.", thinks=thinks)


def reasoned_tool_loop(rollout: Rollout) -> None:
    tool_loop(rollout, "I should look")


def parallel_calls(rollout: Rollout) -> None:
    messages = [user("Find")]
    reply = rollout.ask(messages, [TOOL], calls=[("look", {"q": "cats"}), ("look", {"q": "dogs", "n": 2})])
    messages += [echo(reply), result(reply, 0), result(reply, 1, "something else")]
    rollout.ask(messages, [TOOL], says="Done.")


def rewritten_arguments(rollout: Rollout) -> None:
    messages = [user("Find")]
    reply = rollout.ask(messages, [TOOL], calls=[("look", {"q": "cats", "n": 2})])
    [call] = reply.tool_calls
    again = msgspec.structs.replace(call, arguments={"n": 2.0, "q": "cats"}, text='{ "n":2.0, "q":"cats" }')
    messages += [msgspec.structs.replace(reply, tool_calls=(again,)), result(reply)]
    rollout.ask(messages, [TOOL], says="Done.")


def renamed_calls(rollout: Rollout) -> None:
    """The agent gives calls ids of its own, and answers them by those."""
    messages = [user("Find")]
    for number in range(3):
        reply = rollout.ask(messages, [TOOL], calls=[("look", {"q": f"cats {number}"})])
        [call] = reply.tool_calls
        mine = msgspec.structs.replace(call, id=f"myownid0{number}")
        messages += [msgspec.structs.replace(reply, tool_calls=(mine,))]
        messages += [Message("tool", "found it", tool_call_id=mine.id, name=mine.name)]
    rollout.ask(messages, [TOOL], says="Done.")


def literal_markers(rollout: Rollout) -> None:
    """The same with markers in every text as with harmless words, down to the count of control tokens."""
    markers = " ".join(sorted(word for word in rollout.renderer.tokenizer.added if word.strip())[:12])
    counts = []
    for word in (f"{markers} <tool_call> <think>", "harmless"):
        again = Rollout(rollout.renderer)
        messages = [Message("system", f"Be {word}."), user(f"Hello {word}")]
        reply = again.ask(messages, says="Fine.")
        again.ask([*messages, echo(reply), user(f"{word} again")], says="Yes.")
        ids = [id for turn in again.tree.turns.values() for id in turn.call.context.tolist()]
        counts.append(sum(id in again.renderer.tokenizer.special for id in ids))
    assert counts[0] == counts[1]


HABITS: dict[str, Habit] = {
    "plain": plain,
    "stripped": stripped,
    "reasoned": reasoned,
    "truncated": truncated,
    "truncated_in_reasoning": truncated_in_reasoning,
    "tool_loop": tool_loop,
    "reasoned_tool_loop": reasoned_tool_loop,
    "parallel_calls": parallel_calls,
    "rewritten_arguments": rewritten_arguments,
    "renamed_calls": renamed_calls,
    "literal_markers": literal_markers,
}
CALLS = {"tool_loop", "reasoned_tool_loop", "parallel_calls", "rewritten_arguments", "renamed_calls"}

NO_CALLS = {"gemma3", "smollm3"}
"""Their templates write no tool calls: there is no form in which the model could be shown its own."""
REFUSED = {("llama3.1", "parallel_calls"), ("gpt-oss", "parallel_calls")}
"""Llama refuses two calls in its template's own words; gpt-oss writes the first of them only."""

APPEND_ONLY = {
    "qwen2.5", "granite-4", "qwen3-coder", "kimi-k2", "gemma3", "phi-4-mini", "llama3.1", "smollm3", "qwen3",
    "surrogate-glm-4.6", "kimi-k2-thinking", "deepseek-v3.1", "mistral-small-3.2",
}  # fmt: skip
"""Where a conversation without reasoning and tools is one sample."""
TOOL_LOOPS = APPEND_ONLY - NO_CALLS
"""Where a tool loop is one sample."""
FORKS_AT_USER_TURN = {"mistral-small-3.2"}
"""Moves its list of tools to the last user turn."""


@pytest.mark.parametrize("habit", sorted(HABITS))
def test_every_habit_is_exact_and_faithful(tokenizer_folder: Path, habit: str) -> None:
    if (tokenizer_folder.name in NO_CALLS and habit in CALLS) or (tokenizer_folder.name, habit) in REFUSED:
        pytest.skip("the template writes no such calls (listed, reviewed)")
    rollout = Rollout(renderer_at(tokenizer_folder), seed=1)
    HABITS[habit](rollout)
    assert set(rollout.forks) <= {"", REWROTE}


@pytest.mark.parametrize("habit", ["plain", "stripped", "truncated"])
def test_conversations_are_one_sample_where_the_template_appends(tokenizer_folder: Path, habit: str) -> None:
    rollout = Rollout(renderer_at(tokenizer_folder), seed=2)
    HABITS[habit](rollout)
    if tokenizer_folder.name in APPEND_ONLY:
        assert rollout.forks == ["", "", ""]


def test_tool_loops_are_one_sample_where_the_template_appends(tokenizer_folder: Path) -> None:
    if tokenizer_folder.name not in TOOL_LOOPS:
        pytest.skip("this template rewrites tool loops, or has none (listed, reviewed)")
    rollout = Rollout(renderer_at(tokenizer_folder), seed=3)
    tool_loop(rollout)
    last = REWROTE if tokenizer_folder.name in FORKS_AT_USER_TURN else ""
    assert rollout.forks == ["", "", "", "", last]


def test_verbatim_keeps_what_was_sampled(tokenizer_folder: Path) -> None:
    for habit in (plain, reasoned):
        rollout = Rollout(renderer_at(tokenizer_folder), seed=4, verbatim=True)
        habit(rollout)
        assert rollout.forks == ["", "", ""]


def test_a_refusing_template_is_the_callers_fault(shared_tokenizers: dict[str, Path]) -> None:
    rollout = Rollout(renderer_at(shared_tokenizers["gemma3"]))
    with pytest.raises(TemplateRefused, match="alternate"):
        rollout.ask([user("One"), user("Two")], says="Never")


@pytest.mark.parametrize("said", ["<|channel|>", "<|channel|>final", "<|channel|>analysis"])
def test_a_reply_cut_inside_its_header_says_nothing(shared_tokenizers: dict[str, Path], said: str) -> None:
    """What closes it is the template's: it goes on where the header it writes is the one that was begun."""
    rollout = Rollout(renderer_at(shared_tokenizers["gpt-oss"]), seed=5)
    reply = rollout.ask([user("Hello")], raw=said)
    assert (reply.reasoning, reply.content) == (None, "")
    rollout.ask([user("Hello"), reply, user("Go on")], says="Yes.")
    assert rollout.forks == ["", REWROTE if said.endswith("analysis") else ""]
