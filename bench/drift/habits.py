"""What ordinary agents do to their history. By name, each a rollout; the model behind it spells as it likes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from bench.drift import words
from bench.drift.agent import Agent, Said, echo, result, system, user, without_reasoning
from bench.drift.model import CONTEXT, Cut, Line
from stenograph.core import JSON

Habit: TypeAlias = Callable[[Agent], Awaitable[None]]


def _tool(name: str, description: str) -> dict[str, JSON]:
    properties = {
        "q": {"type": "string", "description": "what"},
        "n": {"type": "integer", "description": "how many"},
        "deep": {"type": "boolean", "description": "everywhere"},
    }
    parameters = {"type": "object", "properties": properties, "required": ["q"]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


LOOK = _tool("look", "Looks something up.")
ASK = _tool("ask", "Asks somebody.")
CHOICES = (
    ("Yes", "Yes sir", "Yes sir, gladly", "No"),
    ("Yes", "Yes", "Yes", "Yes"),
    ("Yes sir", "Yes", "Yes sir", "Yes sir, gladly"),
)
"""Equal ones, and beginnings of each other: text alone does not tell them apart."""


async def odd_spelling(agent: Agent) -> None:
    agent.hear(system("Be brief."), user(agent.text()))
    await agent.converse(4)


async def stop_token(agent: Agent) -> None:
    """Nothing else about it is out of the ordinary."""
    agent.hear(user(agent.text()))
    for _ in range(3):
        reply = await agent.ask(Line(agent.text(), spelling="canonical"))
        agent.hear(echo(reply), user(agent.text()))


async def cut_in_a_word(agent: Agent, cut: Cut = "word") -> None:
    agent.hear(user(agent.text()))
    for _ in range(3):
        reply = await agent.ask(Line(f"{agent.text()}, 👩\u200d🚀🙂 unbelievably 🙂🧿🙂 international", cut=cut))
        agent.hear(echo(reply), user("Go on"))


async def cut_in_a_character(agent: Agent) -> None:
    await cut_in_a_word(agent, "character")


async def white_space_stripped(agent: Agent) -> None:
    agent.hear(user(agent.text()))
    for _ in range(3):
        before, behind = agent.dice.choice(("", " ", "\n\n")), agent.dice.choice(("\n", "  ", " \n\n"))
        kept = echo(await agent.ask(Line(before + agent.text() + behind)))
        agent.hear(kept | {"content": kept["content"].strip()}, user(agent.text()))


async def reasoning_not_echoed(agent: Agent) -> None:
    """A tool loop, where there are tools: most templates keep its reasoning until the next user turn."""
    agent.hear(user(agent.text()))
    for _ in range(2 if agent.calls_tools else 0):
        reply = await agent.ask(_call(agent, thinks=agent.text()), tools=[LOOK])
        agent.hear(without_reasoning(reply), *_results(agent, reply))
    for _ in range(2):
        tools = [LOOK] if agent.calls_tools else []
        reply = await agent.ask(Line(agent.text(), thinks=agent.text()), tools=tools)
        agent.hear(without_reasoning(reply), user(agent.text()))


async def new_user_turn(agent: Agent) -> None:
    """All is sent back; some templates drop what was thought before the last user message."""
    agent.hear(user(agent.text()))
    for _ in range(3):
        reply = await agent.ask(Line(agent.text(), thinks=agent.text()))
        agent.hear(echo(reply), user(agent.text()))


async def arguments_reprinted(agent: Agent) -> None:
    agent.hear(user(agent.text()))
    for _ in range(2):
        reply = await agent.ask(_call(agent), tools=[LOOK])
        kept, reprint = echo(reply), agent.dice.choice((_spaced, _sorted, _as_python))
        kept["tool_calls"] = [_reprinted(call, reprint) for call in kept.get("tool_calls", ())]
        agent.hear(kept, *_results(agent, reply))
    await agent.ask(Line(agent.text()), tools=[LOOK])


async def reply_edited(agent: Agent) -> None:
    agent.hear(user(agent.text()))
    await agent.converse(2)
    agent.messages[1]["content"] = f"Edited: {agent.text()}"
    await agent.converse(2)


async def tools_changed(agent: Agent) -> None:
    agent.hear(user(agent.text()))
    for tools in ([LOOK], [LOOK, ASK], [LOOK, ASK]):
        reply = await agent.ask(Line(agent.text()), tools=tools)
        agent.hear(echo(reply), user(agent.text()))


async def history_compacted(agent: Agent) -> None:
    agent.hear(system("Be brief."), user(agent.text()))
    await agent.converse(3)
    first = agent.dice.choice((agent.messages[0], system("Go on from the summary.")))
    latest = agent.dice.choice(([], agent.messages[-2:]))
    agent.messages = [first, user(f"Summary: {agent.text()}"), *latest]
    await agent.converse(2)


async def sub_agents(agent: Agent) -> None:
    """Two conversations in one session, turn by turn."""
    talks = [[system(f"You are agent {name}."), user(agent.text())] for name in "AB"]
    for _ in range(3):
        for talk in talks:
            reply = await agent.ask(Line(agent.text()), talk)
            talk += [echo(reply), user(agent.text())]


async def two_calls_at_once(agent: Agent) -> None:
    """Two questions, or the same one twice, behind one history; then it goes on with the second answer."""
    agent.hear(user(agent.text()))
    await agent.converse(1)
    first, second = agent.messages, agent.messages
    if agent.dice.random() < 0.5:
        second = [*agent.messages[:-1], user(agent.text())]
    _, reply = await agent.at_once((Line(agent.text()), first), (Line(agent.text()), second))
    agent.messages = [*second, echo(reply), user(agent.text())]
    await agent.converse(1)


async def third_of_four(agent: Agent) -> None:
    agent.hear(user(agent.text()))
    for _ in range(2):
        replies = await agent.choices([Line(text) for text in agent.dice.choice(CHOICES)])
        agent.hear(echo(replies[2]), user(agent.text()))
    await agent.converse(1)


async def call_repeated(agent: Agent) -> None:
    agent.hear(user(agent.text()))
    await agent.converse(1)
    agent.hear(echo(await agent.ask_twice(Line(agent.text()))), user(agent.text()))
    await agent.converse(1)


async def too_long_then_trimmed(agent: Agent) -> None:
    agent.hear(user(agent.text()))
    await agent.converse(1)
    await agent.ask_too_much([*agent.messages[:-1], user(words.text(agent.dice, CONTEXT, CONTEXT))])
    await agent.converse(2)


async def null_content(agent: Agent) -> None:
    """As the servers answer calls, and as the SDKs send them back."""
    agent.hear(user(agent.text()))
    for _ in range(2):
        reply = await agent.ask(_call(agent), tools=[LOOK])
        agent.hear(echo(reply) | {"content": reply["content"]}, *_results(agent, reply))
    await agent.ask(Line(agent.text()), tools=[LOOK])


async def markers_in_user_text(agent: Agent) -> None:
    agent.hear(system("Be brief."), user(agent.text()))
    for _ in range(3):
        markers = agent.dice.sample(agent.markers, min(6, len(agent.markers)))
        agent.messages[-1]["content"] += f": what do {' '.join(markers)} and <tool_call> <|im_end|> mean?"
        await agent.converse(1)


HABITS: dict[str, tuple[str, Habit]] = {
    "odd_spelling": ("samples in tokens that the tokenizer would not choose", odd_spelling),
    "stop_token": ("ends with the stop token, spelt canonically", stop_token),
    "cut_in_a_word": ("is cut by length in a word", cut_in_a_word),
    "cut_in_a_character": ("is cut by length in a character", cut_in_a_character),
    "white_space_stripped": ("strips the reply's outer white space", white_space_stripped),
    "reasoning_not_echoed": ("does not echo reasoning", reasoning_not_echoed),
    "new_user_turn": ("echoes reasoning, new user turn", new_user_turn),
    "arguments_reprinted": ("re-serialises arguments", arguments_reprinted),
    "reply_edited": ("edits an assistant message", reply_edited),
    "tools_changed": ("changes the tool list", tools_changed),
    "history_compacted": ("compacts its history", history_compacted),
    "sub_agents": ("interleaves sub-agents", sub_agents),
    "two_calls_at_once": ("calls twice at once", two_calls_at_once),
    "third_of_four": ("asks n = 4, continues the third", third_of_four),
    "call_repeated": ("repeats a call after a timeout", call_repeated),
    "too_long_then_trimmed": ("is too long, trims, tries again", too_long_then_trimmed),
    "null_content": ("`content: null` with calls, then `role: tool`", null_content),
    "markers_in_user_text": ("has literal markers in user text", markers_in_user_text),
}
"""What a reader is told of it, and what it does."""
ODD_ONLY = frozenset({"odd_spelling"})
"""There is nothing to it where the model spells canonically."""
NEED_CALLS = frozenset({"arguments_reprinted", "null_content"})


# ------------------------------------------------------------------------------------------------------------ tools


def _call(agent: Agent, thinks: str | None = None) -> Line:
    return Line(thinks=thinks, calls=(("look", words.arguments(agent.dice)),))


def _results(agent: Agent, reply: Said) -> list[Said]:
    return [result(call, agent.text()) for call in reply.get("tool_calls") or ()]


def _reprinted(call: JSON, reprint: Callable[[JSON], str]) -> JSON:
    arguments = reprint(json.loads(call["function"]["arguments"]))
    return call | {"function": call["function"] | {"arguments": arguments}}


def _spaced(arguments: JSON) -> str:
    return json.dumps(arguments, separators=(" ,  ", " : "))


def _sorted(arguments: JSON) -> str:
    return json.dumps(dict(sorted(arguments.items())), ensure_ascii=False, separators=(",", ":"))


def _as_python(arguments: JSON) -> str:
    return repr(arguments)
