"""How long an agent waits for the first word of a stream: at the engine itself, and through us."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import uvloop

from bench.contenders import CHAT
from bench.load import MODEL
from bench.processes import Server, serving
from bench.report import Scale, Spread, Table
from bench.stream import Timed, streamed
from bench.talk import TOKENIZER, Speech, loaded_tokenizer
from stenograph.core import JSON, Value
from stenograph.render.tokenizer import Tokenizer

PACE = 0.02
"""Seconds a token: 50 tokens a second."""
HISTORIES = {"short": 100, "8k": 7700}
IN_FLIGHT = (1, 16)
FEWEST_SESSIONS = 8
"""In flight alone they are one after the other."""
STEP = 60
QUICK_SESSIONS = 2
PATIENCE = 300.0


class Outcome(Value):
    history: str
    in_flight: int
    direct: tuple[float, ...]
    """Milliseconds to the first word; the median of each repeat."""
    ours: tuple[float, ...]


def run(scale: Scale) -> Sequence[Table]:
    return [_table(uvloop.run(_measured(scale, loaded_tokenizer())))]


async def _measured(scale: Scale, tokenizer: Tokenizer) -> list[Outcome]:
    with tempfile.TemporaryDirectory(prefix="stenograph-bench-") as name:
        folder = Path(name)
        async with (
            asyncio.timeout(PATIENCE),
            serving("bench.paced", PACE, errors=folder / "engine.log") as engine,
            serving(
                "stenograph", "serve", "--engine", f"vllm={engine.url}", "--tokenizer", TOKENIZER,
                "--port", 0, "--store", folder / "store", errors=folder / "stenograph.log",
            ) as gateway,
        ):  # fmt: skip
            histories = dict(list(HISTORIES.items())[: 1 if scale.quick else None])
            at_once = IN_FLIGHT[: 1 if scale.quick else None]
            return [
                await _case(scale, tokenizer, engine, gateway, history, opening, in_flight)
                for history, opening in histories.items()
                for in_flight in at_once
            ]


async def _case(
    scale: Scale, tokenizer: Tokenizer, engine: Server, gateway: Server, history: str, opening: int, in_flight: int
) -> Outcome:
    """One round before the first is not counted. The sides take turns in being first."""
    sides: dict[str, Side] = {"direct": _Direct(engine, tokenizer), "ours": _Ours(gateway)}
    rounds: dict[str, list[list[Timed]]] = {name: [] for name in sides}
    for repeat in range(scale.repeats + 1):
        for name in sorted(sides, reverse=bool(repeat % 2)):
            sessions = QUICK_SESSIONS if scale.quick else max(in_flight, FEWEST_SESSIONS)
            speeches = [Speech(tokenizer, seed=seed) for seed in range(sessions)]
            label = f"{history}.{in_flight}.{repeat}"
            rounds[name].append(await _round(sides[name], label, speeches, opening, in_flight))
    direct, ours = (tuple(map(_median, rounds[name][1:])) for name in sides)
    return Outcome(history, in_flight, direct, ours)


async def _round(side: Side, label: str, speeches: Sequence[Speech], opening: int, in_flight: int) -> list[Timed]:
    """What is measured is the second turn of each session: it goes on with a history."""
    calls = await asyncio.gather(
        *(side.opened(f"{label}.{place}", speech, opening) for place, speech in enumerate(speeches))
    )
    slots = asyncio.Semaphore(in_flight)

    async def timed(path: str, body: bytes) -> Timed:
        async with slots:
            return await streamed(side.url, path, body)

    return await asyncio.gather(*(timed(path, body) for path, body in calls))


def _median(timed: Sequence[Timed]) -> float:
    return statistics.median(one.first for one in timed) * 1000


# ------------------------------------------------------------------------------------------------------------- sides


class Side(Protocol):
    url: str

    async def opened(self, name: str, speech: Speech, opening: int) -> tuple[str, bytes]:
        """The path and the body of a session's second turn."""


class _Direct:
    """As many ids as our own turn has tokens, and nothing asked for but text."""

    def __init__(self, engine: Server, tokenizer: Tokenizer) -> None:
        self.url = engine.url
        self._tokenizer = tokenizer

    async def opened(self, name: str, speech: Speech, opening: int) -> tuple[str, bytes]:
        said = [*speech.opening(opening), speech.step(STEP)]
        ids = self._tokenizer.encode("\n".join(message["content"] for message in said))
        fields = {"model": MODEL, "prompt": ids, "stream": True, "max_tokens": 1000}
        return "/v1/completions", msgspec.json.encode(fields)


class _Ours:
    def __init__(self, gateway: Server) -> None:
        self.url = gateway.url

    async def opened(self, name: str, speech: Speech, opening: int) -> tuple[str, bytes]:
        messages: list[JSON] = [*speech.opening(opening)]
        path = f"/s/{name}{CHAT}"
        answer = await streamed(self.url, path, _body(messages))
        return path, _body([*messages, {"role": "assistant", "content": answer.text}, speech.step(STEP)])


def _body(messages: Sequence[JSON]) -> bytes:
    return msgspec.json.encode({"model": MODEL, "messages": messages, "stream": True})


# ------------------------------------------------------------------------------------------------------------- table


def _table(outcomes: Sequence[Outcome]) -> Table:
    return Table(
        title="Milliseconds to the first streamed word, at 50 tokens a second",
        head=("history", "in flight", "direct", "stenograph", "stenograph : direct"),
        rows=tuple(_row(outcome) for outcome in outcomes),
        note="Of a session's second turn; the median of a round, and its median (least to most) over the repeats. "
        "All that are in flight begin at the same moment, and the two cores are the engine's and the client's as well.",
    )


def _row(outcome: Outcome) -> tuple[str, ...]:
    ratio = Spread.of_ratios(outcome.ours, outcome.direct)
    times = (Spread.of(outcome.direct), Spread.of(outcome.ours), ratio)
    return outcome.history, str(outcome.in_flight), *map(str, times)
