"""Agents: so many sessions in flight, each a conversation whose every turn sends the whole history so far.

A session's opening call, in which all of its history is new, comes before the clock starts: what is measured is a turn
that goes on with a history. Everything that an agent says is made before, too.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from bench.client import Client
from bench.talk import Shape, Speech
from stenograph.core import Value

MODEL = "bench"
HEAD = b'{"model":"%s","messages":[' % MODEL.encode()


class _Message(msgspec.Struct):
    content: str


class _Choice(msgspec.Struct):
    message: _Message


class _Answer(msgspec.Struct):
    choices: list[_Choice]


_ANSWER = msgspec.json.Decoder(_Answer)


class Played(Value):
    """One run of one contender. Times are of the turns behind the openings."""

    turns: int
    seconds: float
    cpu_seconds: float
    """That the contender's process took; NaN where the system does not tell."""
    latencies: tuple[float, ...]
    """In seconds, sorted."""
    openings: tuple[float, ...]
    """Of the opening calls themselves, likewise."""

    @property
    def rate(self) -> float:
        """Turns a second."""
        return self.turns / self.seconds

    @property
    def cpu(self) -> float:
        """Milliseconds a turn."""
        return self.cpu_seconds / self.turns * 1000

    def latency(self, part: float) -> float:
        """Milliseconds that `part` of the turns stay within."""
        return self.latencies[round(part * (len(self.latencies) - 1))] * 1000

    @property
    def opening(self) -> float:
        """Milliseconds that an opening takes, the median."""
        return statistics.median(self.openings) * 1000


def joined(parts: Sequence[Played]) -> Played:
    return Played(
        turns=sum(part.turns for part in parts),
        seconds=sum(part.seconds for part in parts),
        cpu_seconds=sum(part.cpu_seconds for part in parts),
        latencies=tuple(sorted(latency for part in parts for latency in part.latencies)),
        openings=tuple(sorted(latency for part in parts for latency in part.openings)),
    )


class Script(Value):
    """What the agent of one session says, as JSON."""

    opening: bytes
    steps: tuple[bytes, ...]


def written(speech: Speech, shape: Shape) -> Script:
    encode = msgspec.json.encode
    opening = b",".join(map(encode, speech.opening(shape.opening)))
    return Script(opening, tuple(encode(speech.step(shape.step)) for _ in range(shape.turns)))


class Session:
    """One agent at work."""

    def __init__(self, path: str, script: Script) -> None:
        self._path = path
        self._script = script
        self._history = bytearray(HEAD + script.opening)

    async def open(self, client: Client) -> list[float]:
        return [await self._turn(client)]

    async def play(self, client: Client, start: int | None = None, end: int | None = None) -> list[float]:
        """Its steps, or some of them, as a slice would name them."""
        latencies = []
        for step in self._script.steps[start:end]:
            self._history += b"," + step
            latencies.append(await self._turn(client))
        return latencies

    async def _turn(self, client: Client) -> float:
        started = time.perf_counter()
        answer = await client.post(self._path, bytes(self._history) + b"]}")
        taken = time.perf_counter() - started
        content = _ANSWER.decode(answer).choices[0].message.content
        self._history += b"," + msgspec.json.encode({"role": "assistant", "content": content})
        return taken


async def play(url: str, sessions: Sequence[Session], in_flight: int, meter: Callable[[], float]) -> Played:
    """`meter`: seconds of CPU that the contender has taken so far."""
    async with _connected(url, in_flight) as clients:
        openings = await _each(clients, sessions, Session.open)
        cpu, started = meter(), time.perf_counter()
        latencies = await _each(clients, sessions, Session.play)
        seconds, cpu = time.perf_counter() - started, meter() - cpu
    return Played(len(latencies), seconds, cpu, tuple(sorted(latencies)), tuple(sorted(openings)))


@asynccontextmanager
async def _connected(url: str, count: int) -> AsyncIterator[list[Client]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Client(url)) for _ in range(count)]


async def _each(
    clients: Sequence[Client], sessions: Sequence[Session], do: Callable[[Session, Client], Awaitable[list[float]]]
) -> list[float]:
    """Every client takes up the next session as soon as it is free."""
    waiting = iter(sessions)

    async def work(client: Client) -> list[float]:
        return [latency for session in waiting for latency in await do(session, client)]

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work(client)) for client in clients]
    return [latency for task in tasks for latency in task.result()]
