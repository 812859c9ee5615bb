"""Every habit on one tokenizer, through every way. A cell is one habit there, in one spelling, over all seeds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from bench.drift.agent import Agent, GaveUp
from bench.drift.by_text import ByText
from bench.drift.habits import HABITS, LOOK, NEED_CALLS
from bench.drift.measure import Tally, measured
from bench.drift.model import Model, Spelling, Voice
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
    "joined": "re-render, join by length",
    "split": "re-render, split where it breaks",
    "by_text": "extend by decoded text (as Atropos)",
    "or_fail": "extend or fail (as OpenRLHF's executor)",
}
NO_CALLS = "(the template writes no tool calls, and says nothing)"
REFUSES = "the chat template refuses this conversation: "
MOST_FAULTS = 3


class Cell(Value, kw_only=True):
    tokenizer: str
    habit: str
    spelling: Spelling
    refused: str | None = None
    """In the template's own words; None: it can be rendered."""
    ways: Mapping[str, Tally] = msgspec.field(default_factory=dict)
    forks: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Ours, by reason."""
    faults: Mapping[str, Mapping[str, int]] = msgspec.field(default_factory=dict)
    """By way, the most frequent words on what was wrong with its prompts, and on why its calls failed."""


class Played(Value):
    """One rollout, measured."""

    tally: Tally
    faults: Counter[str]
    forks: Counter[str]
    refusal: str | None
    """The template's, which is the same for every way: told by ours, which is the first to play."""


class Bench:
    """One tokenizer."""

    def __init__(self, name: str, gateway: Here) -> None:
        self._name = name
        self._plain = Plain(gateway.renderer)
        self._voice = Voice(gateway.renderer, [LOOK])
        self._reading = Reading(self._plain)
        self._makers: dict[str, Callable[[str, Model], Way]] = {
            "ours": lambda session, model: Ours(gateway, session, model),
            "joined": lambda _, model: ReRender(self._plain, model, joined),
            "split": lambda _, model: ReRender(self._plain, model, split),
            "by_text": lambda _, model: ByText(self._plain, model),
            "or_fail": lambda _, model: OrFail(self._plain, model),
        }

    async def cell(self, habit: str, spelling: Spelling, seeds: int) -> Cell:
        named = Cell(tokenizer=self._name, habit=habit, spelling=spelling)
        if habit in NEED_CALLS and not self._voice.calls_tools:
            return msgspec.structs.replace(named, refused=self._why_no_calls())
        tallies = {way: Tally() for way in WAYS}
        faults: dict[str, Counter[str]] = {way: Counter() for way in WAYS}
        forks: Counter[str] = Counter()
        for seed in range(seeds):
            for way in WAYS:
                played = await self._played(way, named, seed)
                if refused := played.refusal:
                    return msgspec.structs.replace(named, refused=refused)
                tallies[way] += played.tally
                faults[way] += played.faults
                forks += played.forks
        shown = {way: dict(counts.most_common(MOST_FAULTS)) for way, counts in faults.items() if counts}
        return msgspec.structs.replace(named, ways=tallies, forks=dict(forks), faults=shown)

    async def _played(self, way: str, cell: Cell, seed: int) -> Played:
        """The same dice for every way: what is asked and said does not depend on how it is recorded."""
        name = f"{cell.habit}-{cell.spelling}-{seed}"
        model = Model(self._voice, cell.spelling, f"{self._name}, {name}")
        recorder = self._makers[way](name, model)
        agent = Agent(recorder, model, random.Random(f"{self._name}, {name}"))
        try:
            await HABITS[cell.habit][1](agent)
        except GaveUp:
            assert agent.failures
        tally, faults = measured(recorder, agent, model, self._reading)
        failures = Counter(str(failure) for failure in agent.failures)
        forks = recorder.forks() if isinstance(recorder, Ours) else Counter[str]()
        return Played(tally, faults + failures, forks, _refusal(agent) if way == "ours" else None)

    def _why_no_calls(self) -> str:
        call = ToolCall("abcdefghi", "look", {"q": "cats"})
        talk = (Message("user", "Find"), Message("assistant", "", None, (call,)))
        try:
            self._plain.render(Conversation((*talk, Message("tool", "found", tool_call_id=call.id)), (LOOK,)))
        except TemplateRefused as refused:
            return refused.message.removeprefix(REFUSES)
        return NO_CALLS


def _refusal(agent: Agent) -> str | None:
    words = (failure.message for failure in agent.failures)
    return next((said.removeprefix(REFUSES) for said in words if said.startswith(REFUSES)), None)
