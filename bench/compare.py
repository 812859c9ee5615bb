"""Turns a second and added latency: straight to the engine, through the floor, through us."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import uvloop

from bench.contenders import Contender, check_recorded, contenders
from bench.load import Played, Script, Session, joined, play, written
from bench.report import Scale, Spread, Table
from bench.talk import Shape, Speech, loaded_tokenizer
from stenograph.core import Value
from stenograph.render.tokenizer import Tokenizer

SHAPES = {"short": Shape(opening=100, step=60, turns=8), "8k": Shape(opening=7700, step=60, turns=8)}
"""In the middle of its turns a conversation of the second is 8k tokens long."""
IN_FLIGHT = (1, 16, 64)
AN_ENGINE_AT_WORK = 0.02
"""Seconds a call, of an engine that is not ready at once; a real one takes ten times that for as many tokens."""
FEWEST_SESSIONS = 8
"""In flight alone, they are played one after the other: too few turns would make no p99."""
WARM_SESSIONS = 4
QUICK_SHAPE = Shape(opening=40, step=10, turns=2)
QUICK_SESSIONS = 2
PATIENCE = 180.0
"""Seconds for one case, several times what it takes: a contender that hangs must not hang the whole run."""


class Case(Value):
    in_flight: int
    history: str
    shape: Shape
    sessions: int
    engine_takes: float = 0.0
    """Seconds a call."""


class Outcome(Value):
    case: Case
    played: dict[str, list[Played]]
    """By contender, one a repeat."""

    def spread(self, name: str, figure: Callable[[Played], float]) -> str:
        return str(Spread.of([figure(one) for one in self.played[name]]))

    def ratio(self, name: str, to: str) -> str:
        rates = {each: [one.rate for one in self.played[each]] for each in (name, to)}
        return str(Spread.of_ratios(rates[name], rates[to]))

    def added(self, name: str, figure: Callable[[Played], float]) -> str:
        """To going straight to the engine, repeat by repeat."""
        pairs = zip(self.played[name], self.played["direct"], strict=True)
        return str(Spread.of([figure(one) - figure(direct) for one, direct in pairs]))


def run(scale: Scale) -> Sequence[Table]:
    tokenizer = loaded_tokenizer()
    outcomes = [uvloop.run(_measured(case, scale, tokenizer)) for case in _cases(scale)]
    return [_throughput(outcomes), _cost(outcomes)]


def _cases(scale: Scale) -> list[Case]:
    if scale.quick:
        return [Case(QUICK_SESSIONS, "tiny", QUICK_SHAPE, QUICK_SESSIONS)]
    at_once = [
        Case(in_flight, history, shape, max(in_flight, FEWEST_SESSIONS))
        for history, shape in SHAPES.items()
        for in_flight in IN_FLIGHT
    ]
    return [*at_once, Case(16, "8k", SHAPES["8k"], sessions=16, engine_takes=AN_ENGINE_AT_WORK)]


# --------------------------------------------------------------------------------------------------------- measuring


async def _measured(case: Case, scale: Scale, tokenizer: Tokenizer) -> Outcome:
    """One round before the first is for caches and connections, and not counted. Nobody is always first."""
    played: dict[str, list[Played]] = {}
    with tempfile.TemporaryDirectory(prefix="stenograph-bench-") as folder:
        async with asyncio.timeout(PATIENCE), contenders(Path(folder), case.engine_takes) as everybody:
            for repeat in range(scale.repeats + 1):
                speech = Speech(tokenizer, seed=repeat)
                scripts = [written(speech, case.shape) for _ in range(case.sessions if repeat else WARM_SESSIONS)]
                for contender in itertools.islice(itertools.cycle(everybody), repeat, repeat + len(everybody)):
                    one = await _round(case, contender, scripts, f"{repeat}", scale.seconds if repeat else 0)
                    played.setdefault(contender.name, []).append(one)
    return Outcome(case, {name: rounds[1:] for name, rounds in played.items()})


async def _round(case: Case, contender: Contender, scripts: Sequence[Script], name: str, least: float) -> Played:
    """The same words for every contender, and again in new sessions until there is enough to go by."""
    batches = [await _batch(case, contender, scripts, name)]
    while sum(batch.seconds for batch in batches) < least:
        batches.append(await _batch(case, contender, scripts, f"{name}-{len(batches)}"))
    return joined(batches)


async def _batch(case: Case, contender: Contender, scripts: Sequence[Script], name: str) -> Played:
    ids = [f"{name}.{number}" for number in range(len(scripts))]
    sessions = [Session(contender.path(id), script) for id, script in zip(ids, scripts, strict=True)]
    one = await play(contender.server.url, sessions, case.in_flight, contender.server.cpu_seconds)
    if contender.records:
        for id in ids:
            await check_recorded(contender, id, case.shape.turns + 1)
    return one


# ------------------------------------------------------------------------------------------------------------ tables

CASE_HEAD = ("history", "in flight", "engine takes")


def _throughput(outcomes: Sequence[Outcome]) -> Table:
    return Table(
        title="Turns a second",
        head=(*CASE_HEAD, "direct", "floor", "stenograph", "direct : floor", "stenograph : floor"),
        rows=tuple(_throughput_row(outcome) for outcome in outcomes),
        note="Median (least to most) over the repeats; a ratio is taken repeat by repeat.",
    )


def _throughput_row(outcome: Outcome) -> tuple[str, ...]:
    rates = [outcome.spread(name, lambda played: played.rate) for name in ("direct", "floor", "stenograph")]
    return *_case(outcome), *rates, outcome.ratio("direct", "floor"), outcome.ratio("stenograph", "floor")


def _cost(outcomes: Sequence[Outcome]) -> Table:
    return Table(
        title="What a turn costs, in milliseconds",
        head=(*CASE_HEAD, "contender", "added p50", "added p99", "CPU a turn", "opening p50"),
        rows=tuple(_cost_row(outcome, name) for outcome in outcomes for name in ("floor", "stenograph")),
        note="Added to going straight to the engine. Where that takes no time and many are in flight, everybody is at "
        "their limit, and added time is time in line. An opening is a session's first call: all of it is new.",
    )


def _cost_row(outcome: Outcome, name: str) -> tuple[str, ...]:
    return (
        *_case(outcome),
        name,
        outcome.added(name, lambda played: played.latency(0.5)),
        outcome.added(name, lambda played: played.latency(0.99)),
        outcome.spread(name, lambda played: played.cpu),
        outcome.spread(name, lambda played: played.opening),
    )


def _case(outcome: Outcome) -> tuple[str, str, str]:
    case = outcome.case
    takes = f"{case.engine_takes * 1000:.0f} ms" if case.engine_takes else "no time"
    return case.history, str(case.in_flight), takes
