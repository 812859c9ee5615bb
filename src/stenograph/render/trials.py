"""How a template treats a history that grows: tail by tail, and over rollouts of ordinary shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from stenograph.core import JSON, Conversation, Fork, Value
from stenograph.errors import TemplateRefused
from stenograph.render.rehearsal import NotReadBack, Reply, Setting, Step, rehearse
from stenograph.render.renderer import Renderer
from stenograph.render.takes import Kind, Take, own_words
from stenograph.render.telltales import TOOLS

SETTINGS = tuple(
    Setting(history, reasoning) for history in ("template", "verbatim") for reasoning in ("restore", "strict")
)
TURNS, CALLS, TASKS, CALLS_A_TASK = 6, 6, 3, 2
"""How long the rollouts are: enough to see whether a fork comes once, at each task, or at each turn."""
SWITCH = "enable_thinking"
"""The argument by which templates of models that may think or not are told."""
TailName: TypeAlias = Literal[
    "user", "user_without_system", "system_then_user", "result", "two_results", "result_then_user", "answer_then_user"
]
RolloutName: TypeAlias = Literal["chat", "tool_loop", "tasks"]
Thinking: TypeAlias = Literal["none", "some", "off"]
"""`none`: the model says nothing before its answer. `off`: it was told so, by the template's own switch."""


class Way(Value):
    """How a model goes about it."""

    tools: bool
    """They are offered; in a chat they are never called."""
    thinking: Thinking

    @property
    def arguments(self) -> dict[str, JSON]:
        return {SWITCH: False} if self.thinking == "off" else {}


KINDS: tuple[Thinking, ...] = ("none", "some", "off")
WAYS = tuple(Way(tools, thinking) for tools in (False, True) for thinking in KINDS)


class Tail(Value):
    """What may follow a reply, and whether the next prompt goes on where the reply ended."""

    tail: TailName
    tools: bool
    thinking: Thinking
    verdict: Literal["appends", "forks", "refuses", "absent"]
    """`absent`: this template writes no such thing, so no model of its does it."""
    detail: str | None = None
    """Why it forks; in the template's own words, why it refuses."""


class Forks(Value):
    history: Literal["template", "verbatim"]
    reasoning: Literal["restore", "strict"]
    forks: int | None
    """Each is one more sample of the rollout. None: the template refuses it."""


class Cost(Value):
    rollout: RolloutName
    tools: bool
    thinking: Thinking
    turns: int
    settings: tuple[Forks, ...]


class Able:
    """What can be tried with a template at all."""

    def __init__(self, renderer: Renderer, takes: Sequence[Take]) -> None:
        families = [renderer.family(Conversation((), tools)) for tools in ((), TOOLS)]
        self._verdicts = {take.what: take.verdict for take in takes}
        self._calls = families[1].grammar.call is not None
        self._thinks = [family.grammar.think is not None for family in families]
        self._switch = [SWITCH in family.template.reads for family in families]
        self.told: list[Step] = ["system"] if self._written("system") else []

    def can(self, way: Way, steps: Sequence[Step]) -> bool:
        calls = max(step.calls for step in steps if isinstance(step, Reply))
        thinks = {"none": True, "some": self._thinks[way.tools], "off": self._switch[way.tools]}[way.thinking]
        if calls:
            return thinks and way.tools and self._calls and (calls == 1 or self._verdicts["two_calls"] != "dropped")
        return thinks and (not way.tools or self._calls or self._written("tools"))

    def _written(self, what: Kind) -> bool:
        return self._verdicts[what] == "written"


def tails(renderer: Renderer, able: Able) -> tuple[Tail, ...]:
    return tuple(_tail(renderer, able, name, way) for name in _tails(able, thinks=False) for way in WAYS)


def _tail(renderer: Renderer, able: Able, name: TailName, way: Way) -> Tail:
    steps = _tails(able, thinks=way.thinking == "some")[name]
    if not able.can(way, steps):
        return Tail(name, way.tools, way.thinking, "absent")
    try:
        forks = [fork for fork in _rehearsed(renderer, steps, way) if fork is not None]
    except TemplateRefused as refusal:
        return Tail(name, way.tools, way.thinking, "refuses", own_words(refusal))
    except NotReadBack as mismatch:
        return Tail(name, way.tools, way.thinking, "absent", str(mismatch))
    return Tail(name, way.tools, way.thinking, *(("forks", forks[0].detail) if forks else ("appends",)))


def _rehearsed(
    renderer: Renderer, steps: Sequence[Step], way: Way, setting: Setting | None = None
) -> list[Fork | None]:
    return rehearse(renderer, steps, TOOLS if way.tools else (), way.arguments, setting or SETTINGS[0])


def _tails(able: Able, *, thinks: bool) -> dict[TailName, list[Step]]:
    """Each comes twice: some templates only show at the second time what they do to the first."""
    answer, call, two = Reply(thinks), Reply(thinks, calls=1), Reply(thinks, calls=2)
    begun: list[Step] = [*able.told, "user"]
    return {
        "user": [*begun, answer, "user", answer, "user", answer],
        "user_without_system": ["user", answer, "user", answer, "user", answer],
        "system_then_user": [*begun, answer, "system", "user", answer, "system", "user", answer],
        "result": [*begun, call, "results", call, "results", answer],
        "two_results": [*begun, two, "results", two, "results", answer],
        "result_then_user": [*begun, call, "results", "user", call, "results", "user", answer],
        "answer_then_user": [*begun, call, "results", answer, "user", call, "results", answer, "user", answer],
    }


def costs(renderer: Renderer, able: Able) -> tuple[Cost, ...]:
    found = (_cost(renderer, able, name, way) for name in _rollouts(able, thinks=False) for way in WAYS)
    return tuple(cost for cost in found if cost is not None)


def _cost(renderer: Renderer, able: Able, name: RolloutName, way: Way) -> Cost | None:
    steps = _rollouts(able, thinks=way.thinking == "some")[name]
    if not able.can(way, steps):
        return None
    settings = (Forks(one.history, one.reasoning, _forks(renderer, steps, way, one)) for one in SETTINGS)
    turns = sum(isinstance(step, Reply) for step in steps)
    return Cost(name, way.tools, way.thinking, turns, tuple(settings))


def _forks(renderer: Renderer, steps: Sequence[Step], way: Way, setting: Setting) -> int | None:
    try:
        return sum(fork is not None for fork in _rehearsed(renderer, steps, way, setting))
    except (TemplateRefused, NotReadBack):
        return None


def _rollouts(able: Able, *, thinks: bool) -> dict[RolloutName, list[Step]]:
    answer = Reply(thinks)
    calling: list[Step] = [Reply(thinks, calls=1), "results"]
    turn: list[Step] = ["user", answer]
    task: list[Step] = ["user", *calling * CALLS_A_TASK, answer]
    return {
        "chat": [*able.told, *turn * TURNS],
        "tool_loop": [*able.told, "user", *calling * CALLS, answer],
        "tasks": [*able.told, *task * TASKS],
    }
