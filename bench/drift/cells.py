"""Every habit on one tokenizer, through every way. A cell is one habit there, over all seeds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from bench.drift.agent import Agent, GaveUp
from bench.drift.by_text import ByText
from bench.drift.habits import HABITS, LOOK, NEED_CALLS
from bench.drift.measure import Tally, measured
from bench.drift.model import Model, Voice
from bench.drift.or_fail import OrFail
from bench.drift.ours import Here, Ours
from bench.drift.plain import Plain
from bench.drift.reading import Reading
from bench.drift.rerender import ReRender, joined, split
from bench.drift.way import Way
from stenograph.core import Conversation, Message, ToolCall, Value
from stenograph.errors import TemplateRefused

WAYS: dict[str, str] = {
    "ours": "Stenograph",
    "joined": "re-render every turn, join by length",
    "split": "re-render every turn, a sample where it breaks",
    "by_text": "extend by decoded text",
    "or_fail": "extend or fail",
}
NO_CALLS = "(the template writes no tool calls, and says nothing)"
REFUSES = "the chat template refuses this conversation: "


class Cell(Value):
    tokenizer: str
    habit: str
    refused: str | None = None
    """In the template's own words; None: it can be rendered."""
    ways: dict[str, Tally] = {}
    forks: dict[str, int] = {}
    """Ours, by reason."""
    faults: dict[str, dict[str, int]] = {}
    """By way, what was wrong with its prompts and why its calls failed."""


Making: TypeAlias = Callable[[Model], Way]


class Bench:
    """One tokenizer."""

    def __init__(self, name: str, gateway: Here) -> None:
        self._name = name
        self._gateway = gateway
        self._plain = Plain(gateway.renderer)
        self._voice = Voice(gateway.renderer, [LOOK])
        self._reading = Reading(self._plain)

    async def cell(self, habit: str, seeds: int) -> Cell:
        if habit in NEED_CALLS and not self._voice.calls_tools:
            return Cell(self._name, habit, refused=self._why_no_calls())
        tallies = {way: Tally() for way in WAYS}
        forks: Counter[str] = Counter()
        faults: dict[str, Counter[str]] = {way: Counter() for way in WAYS}
        for seed in range(seeds):
            for name in WAYS:
                model = Model(self._voice, f"{self._name}, {habit}, {seed}")
                way = self._way(name, f"{habit}-{seed}", model)
                agent = await self._played(way, model, habit, seed)
                if isinstance(way, Ours):
                    if refused := _refusal(agent):
                        return Cell(self._name, habit, refused=refused)
                    forks += way.forks()
                tally, said = measured(way, agent, model, self._reading)
                tallies[name] += tally
                faults[name] += said + Counter(str(failure) for failure in agent.failures)
        shown = {way: dict(counts.most_common(5)) for way, counts in faults.items() if counts}
        return Cell(self._name, habit, ways=tallies, forks=dict(forks), faults=shown)

    def _way(self, name: str, session: str, model: Model) -> Way:
        makers: dict[str, Making] = {
            "ours": lambda model: Ours(self._gateway, session, model),
            "joined": lambda model: ReRender(self._plain, model, joined),
            "split": lambda model: ReRender(self._plain, model, split),
            "by_text": lambda model: ByText(self._plain, model),
            "or_fail": lambda model: OrFail(self._plain, model),
        }
        return makers[name](model)

    async def _played(self, way: Way, model: Model, habit: str, seed: int) -> Agent:
        """The same dice for every way: what is asked and said does not depend on how it is recorded."""
        agent = Agent(way, model, random.Random(f"{self._name}, {habit}, {seed}"))
        try:
            await HABITS[habit][1](agent)
        except GaveUp:
            assert agent.failures
        return agent

    def _why_no_calls(self) -> str:
        call = ToolCall("abcdefghi", "look", {"q": "cats"})
        talk = (Message("user", "Find"), Message("assistant", "", None, (call,)))
        try:
            self._plain.render(Conversation((*talk, Message("tool", "found", tool_call_id=call.id)), (LOOK,)))
        except TemplateRefused as refused:
            return refused.message.removeprefix(REFUSES)
        return NO_CALLS


def _refusal(agent: Agent) -> str | None:
    words = next((failure.message for failure in agent.failures if failure.message.startswith(REFUSES)), None)
    return words.removeprefix(REFUSES) if words else None
