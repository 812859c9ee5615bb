"""What a turn costs by the length of its history: with a certificate, no more than what is new in it (law 8).

What must follow the length is what crosses the wires: the agent's whole history arrives as text, the whole prompt
leaves as ids, and the engine echoes them.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop

from bench.client import Client
from bench.contenders import Contender, check_recorded, contenders
from bench.load import Script, Session, written
from bench.report import Scale, Spread, Table
from bench.talk import Shape, Speech, loaded_tokenizer
from stenograph.core import Value
from stenograph.render.tokenizer import Tokenizer

LAST = 4
"""So many turns of a session are measured: those whose history is as long as the row says."""
STEP = 240
"""Tokens of a user message; a reply has about 36."""
PATIENCE = 900.0
"""Seconds for everything, several times what it takes."""


class Cost(Value):
    """Of a turn, in milliseconds."""

    latency: float
    """The median."""
    cpu: float
    """Of the process that agents call, on average."""


class History(Value):
    """How long it is, and how it came to be."""

    label: str
    grown: str
    shape: Shape
    rollouts: int
    """A repeat; more of the short ones, which are soon over."""


HISTORIES = (
    History("1k", "at once", Shape(opening=600, step=STEP, turns=LAST), 6),
    History("64k", "at once", Shape(opening=63_000, step=STEP, turns=LAST), 6),
    History("1k", "turn by turn", Shape(opening=60, step=STEP, turns=LAST), 6),
    History("64k", "turn by turn", Shape(opening=60, step=STEP, turns=232), 2),
)
"""At once: in the instructions and the first question, as coding agents do. Turn by turn: 466 messages."""
QUICK = tuple(
    History(label, "at once", Shape(opening=opening, step=10, turns=LAST), 1)
    for label, opening in (("short", 40), ("long", 400))
)


def run(scale: Scale) -> Sequence[Table]:
    histories = QUICK if scale.quick else HISTORIES
    added = uvloop.run(_measured(histories, scale, loaded_tokenizer()))
    return [_table(histories, added)]


async def _measured(histories: Sequence[History], scale: Scale, tokenizer: Tokenizer) -> list[list[Cost]]:
    """By history, one a repeat: how much longer a turn takes than straight to the engine, and its CPU. The round before
    the first is for proofs, caches and connections, and not counted."""
    added: list[list[Cost]] = [[] for _ in histories]
    with tempfile.TemporaryDirectory(prefix="stenograph-bench-") as folder:
        async with asyncio.timeout(PATIENCE), contenders(Path(folder), 0.0) as (direct, _, gateway):
            for repeat in range(scale.repeats + 1):
                speech = Speech(tokenizer, seed=repeat)
                for history, figures in zip(histories, added, strict=True):
                    scripts = [written(speech, history.shape) for _ in range(history.rollouts)]
                    name = f"{repeat}.{history.label}.{history.grown.replace(' ', '-')}"
                    through, straight = [await _cost(one, name, scripts) for one in (gateway, direct)]
                    figures.append(Cost(through.latency - straight.latency, through.cpu))
    return [figures[1:] for figures in added]


async def _cost(contender: Contender, name: str, scripts: Sequence[Script]) -> Cost:
    """Of the last turns; one agent at a time."""
    latencies: list[float] = []
    cpu = 0.0
    for number, script in enumerate(scripts):
        path = contender.path(f"{name}.{number}")
        async with Client(contender.server.url) as client:
            session = Session(path, script)
            await session.open(client)
            await session.play(client, end=-LAST)
            cpu -= contender.server.cpu_seconds()
            latencies += await session.play(client, -LAST)
            cpu += contender.server.cpu_seconds()
        if contender.records:
            await check_recorded(contender, f"{name}.{number}", len(script.steps) + 1)
    return Cost(statistics.median(latencies) * 1000, cpu / len(latencies) * 1000)


def _table(histories: Sequence[History], added: Sequence[list[Cost]]) -> Table:
    shortest = {history.grown: figures for history, figures in reversed([*zip(histories, added, strict=True)])}
    rows = [
        (
            history.label,
            history.grown,
            str(history.shape.turns + 1),
            *_compared([cost.latency for cost in figures], [cost.latency for cost in shortest[history.grown]]),
            *_compared([cost.cpu for cost in figures], [cost.cpu for cost in shortest[history.grown]]),
        )
        for history, figures in zip(histories, added, strict=True)
    ]
    return Table(
        title="What a turn costs by the length of its history",
        head=("history", "grown", "turns", "added p50, ms", "to the shortest", "CPU a turn, ms", "to the shortest"),
        rows=tuple(rows),
        note=f"A turn with {STEP} new tokens of a session that runs alone. Added to going straight to the engine; "
        "CPU is the gateway's own, which a busy machine hardly changes.",
    )


def _compared(figures: Sequence[float], shortest: Sequence[float]) -> tuple[str, str]:
    return str(Spread.of(figures)), str(Spread.of_ratios(figures, shortest))
