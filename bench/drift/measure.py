"""What one rollout comes to: its samples, held against the model's own log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bench.drift.agent import Agent
from bench.drift.model import Generated, Model
from bench.drift.reading import Reading
from bench.drift.way import Trained, Way
from stenograph.core import Value


class Tally(Value):
    """Counts, over any number of rollouts."""

    rollouts: int = 0
    ended_early: int = 0
    """By a call that failed."""
    calls: int = 0
    failed: int = 0
    sampled: int = 0
    """Tokens, in answers that an agent got."""
    right: int = 0
    """Those of them that are trained with their own id and logprob."""
    foreign: int = 0
    """Trained positions that are no token which an agent was answered with."""
    turns: int = 0
    """Answers of which something is trained."""
    drifted: int = 0
    """Those whose tokens stand behind others than the engine had before them."""
    prompts: int = 0
    misread: int = 0
    """Prompts that read otherwise than the template writes the conversation."""
    samples: int = 0
    """Of the rollouts that were not ended early. The others are not trained: in each of the systems that are mirrored,
    the agent's exception is the end of its rollout."""
    sample_tokens: int = 0

    @property
    def whole(self) -> int:
        """Rollouts in which no call failed."""
        return self.rollouts - self.ended_early

    @property
    def perfect(self) -> bool:
        """All of it trained, once, as it was sampled, where it was sampled; nothing misread; nothing failed."""
        wrong = (self.sampled - self.right, self.foreign, self.drifted, self.misread, self.failed)
        return wrong == (0, 0, 0, 0, 0) and self.sampled > 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


class _Token(Value):
    """One sampled token that an agent was answered with."""

    turn: tuple[int, int]
    """Call and choice."""
    place: int
    """In the turn."""
    id: int


def measured(way: Way, agent: Agent, model: Model, reading: Reading) -> tuple[Tally, Counter[str]]:
    """And what was wrong with the prompts, in words."""
    calls = _answered(agent, model)
    tokens = dict(_tokens(calls))
    samples, sent = ([] if agent.failures else way.samples()), way.sent()
    right, foreign = _right(samples, tokens)
    drifted = _drifted(samples, tokens, calls)
    faults = Counter(fault for one in sent if (fault := reading.fault(one)) is not None)
    tally = Tally(
        rollouts=1,
        ended_early=bool(agent.failures),
        calls=agent.calls,
        failed=len(agent.failures),
        sampled=len(tokens),
        right=right,
        foreign=foreign,
        turns=len(drifted),
        drifted=sum(drifted.values()),
        prompts=len(sent),
        misread=faults.total(),
        samples=len(samples),
        sample_tokens=sum(len(sample.tokens) for sample in samples),
    )
    return tally, faults


def _answered(agent: Agent, model: Model) -> dict[int, Generated]:
    """Of a call that was repeated, the last try is what the agent has."""
    made = {generated.number: generated for generated in model.log}
    return {number: made[number] for number in agent.answered}


def _tokens(calls: dict[int, Generated]) -> Iterator[tuple[float, _Token]]:
    for number, made in calls.items():
        for choice, spoken in enumerate(made.choices):
            for place, (id, logprob) in enumerate(zip(spoken.ids, spoken.logprobs, strict=True)):
                yield logprob, _Token((number, choice), place, id)


def _right(samples: Sequence[Trained], tokens: dict[float, _Token]) -> tuple[int, int]:
    found: set[float] = set()
    foreign = 0
    for sample in samples:
        for id, trained, logprob in zip(sample.tokens, sample.mask, sample.logprobs, strict=True):
            if trained and logprob in tokens and tokens[logprob].id == id:
                found.add(logprob)
            else:
                foreign += trained
    return len(found), foreign


def _drifted(
    samples: Sequence[Trained], tokens: dict[float, _Token], calls: dict[int, Generated]
) -> dict[tuple[int, int], bool]:
    """By turn of which something is trained: whether its sample has it behind anything but the engine's prompt."""
    drifted: dict[tuple[int, int], bool] = {}
    for sample in samples:
        starts: dict[tuple[int, int], int] = {}
        for position, (trained, logprob) in enumerate(zip(sample.mask, sample.logprobs, strict=True)):
            token = tokens.get(logprob) if trained else None
            if token is None:
                continue
            start = position - token.place
            if starts.setdefault(token.turn, start) != start:
                drifted[token.turn] = True
        for turn, start in starts.items():
            other = tuple(sample.tokens[:start]) != calls[turn[0]].prompt
            drifted[turn] = drifted.get(turn, False) or other
    return drifted
