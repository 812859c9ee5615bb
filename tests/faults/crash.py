"""Law 5 for the whole service: killed at random moments under load, and held to what its callers were told.

Agents go on with their conversations through every kill. What one of them was answered has to be on disk, bit for bit
as the engine's own log has it; whatever else is on disk has to be something that the engine said (its caller was cut
off before it heard); and who comes back goes on as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import msgspec

from stenograph.core import JSON, ForkReason, Turn, Value
from stenograph.store.sqlite import SqliteReader
from stenograph.store.store import StoredSession
from tests.faults.processes import Engine, Process, engine, gateway

AGENTS = 12
SCRIPT = "seed = 7\nlongest = 12\ndelay = 0.002\n"
LIFE_SECONDS = (0.05, 1.2)
"""Between a gateway's first word and its end: some die before anybody was served, most with many calls under way."""
LONGEST = 8
"""Turns of a rollout, after which the agent begins another."""


class Told(Value):
    """What a caller holds in its hands."""

    turn_id: str
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


class Agent:
    def __init__(self, name: str, chance: random.Random) -> None:
        self.told: list[Told] = []
        self.extended: list[tuple[str, str]] = []
        """Two turns of which the second was asked for as the continuation of the first."""
        self._name = name
        self._chance = chance
        self._rollouts = 0
        self._begin()

    def _begin(self) -> None:
        self._rollouts += 1
        self._session = f"{self._name}.{self._rollouts}"
        self._messages: list[JSON] = [{"role": "user", "content": f"I am {self._session}."}]
        self._before: str | None = None
        self._tries = 0

    async def live(self, url: str) -> None:
        """Until the gateway dies. A call that was cut off is repeated to the next one, as an SDK does it."""
        async with httpx2.AsyncClient(base_url=url, timeout=60.0) as http:
            with suppress(httpx2.HTTPError):
                while True:
                    await self._turn(http)

    async def _turn(self, http: httpx2.AsyncClient) -> None:
        stream = len(self._messages) % 4 == 3
        body = {"model": "m", "messages": self._messages, "logprobs": True, "return_token_ids": True, "stream": stream}
        tries, self._tries = self._tries, self._tries + 1
        headers = {"x-stainless-retry-count": str(tries)}
        answer = await http.post(f"/s/{self._session}/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        text, told = (_streamed if stream else _whole)(answer.content)
        if told is None:
            return
        self._tries = 0
        self.told.append(told)
        if self._before is not None:
            self.extended.append((self._before, told.turn_id))
        self._before = told.turn_id
        self._messages = [
            *self._messages,
            {"role": "assistant", "content": text},
            {"role": "user", "content": "Go on."},
        ]
        if len(self._messages) > 2 * LONGEST:
            self._begin()


def _whole(content: bytes) -> tuple[str, Told | None]:
    choice = msgspec.json.decode(content)["choices"][0]
    return choice["message"]["content"] or "", _told(choice["turn_id"], [choice])


def _streamed(content: bytes) -> tuple[str, Told | None]:
    """None where it broke off: a stream without its last event is no answer."""
    lines = [line.removeprefix(b"data: ") for line in content.splitlines() if line.startswith(b"data: ")]
    if lines[-1:] != [b"[DONE]"]:
        return "", None
    choices = [choice for line in lines[:-1] for choice in msgspec.json.decode(line)["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    (turn_id,) = {choice["turn_id"] for choice in choices if "turn_id" in choice}
    return text, _told(turn_id, choices)


def _told(turn_id: str, choices: list[JSON]) -> Told:
    ids = [id for choice in choices for id in choice.get("token_ids") or ()]
    entries = [entry for choice in choices for entry in (choice.get("logprobs") or {}).get("content") or ()]
    return Told(turn_id, tuple(ids), tuple(entry["logprob"] for entry in entries))


class Outcome(Value):
    kills: int
    told: int
    recorded: int
    untold: int
    """Recorded turns whose callers were cut off before they heard."""
    lost: tuple[str, ...]
    invented: tuple[str, ...]
    wrong: tuple[str, ...]
    broken: tuple[str, ...]
    """Turns that did not go on where their callers did."""

    @property
    def holds(self) -> bool:
        return not (self.lost or self.invented or self.wrong or self.broken)


async def crashes(folder: Path, kills: int, seed: int) -> Outcome:
    chance = random.Random(seed)
    agents = [Agent(f"agent-{place}", random.Random(seed + place)) for place in range(AGENTS)]
    async with engine(folder, SCRIPT) as serving:
        for _ in range(kills):
            async with gateway(folder, serving) as up:
                await _until_killed(up, agents, chance.uniform(*LIFE_SECONDS))
        return _judged(folder, serving, agents, kills)


async def _until_killed(up: Process, agents: list[Agent], seconds: float) -> None:
    lives = [asyncio.create_task(agent.live(up.url)) for agent in agents]
    await asyncio.sleep(seconds)
    await up.kill()
    await asyncio.gather(*lives)


def _judged(folder: Path, serving: Engine, agents: list[Agent], kills: int) -> Outcome:
    with SqliteReader(folder / "store") as reader:
        sessions = [found for facts in reader.facts() if (found := reader.load(facts.id)) is not None]
    turns = {turn.id: turn for turn in _turns(sessions)}
    told = {one.turn_id: one for agent in agents for one in agent.told}
    log = serving.logged()
    return Outcome(
        kills=kills,
        told=len(told),
        recorded=len(turns),
        untold=len(turns.keys() - told.keys()),
        lost=tuple(id for id, one in told.items() if id not in turns or not _same(turns[id], one)),
        invented=tuple(turn.id for turn in turns.values() if turn.call.request_id not in log),
        wrong=tuple(_wrong(sessions, serving)),
        broken=tuple(
            later for agent in agents for before, later in agent.extended if not _extends(turns, before, later)
        ),
    )


def _turns(sessions: list[StoredSession]) -> Iterator[Turn]:
    for session in sessions:
        for call in session.calls:
            yield from call.turns


def _same(turn: Turn, told: Told) -> bool:
    return tuple(turn.sampled.tolist()) == told.ids and tuple(turn.logprobs.tolist()) == told.logprobs


def _wrong(sessions: list[StoredSession], serving: Engine) -> Iterator[str]:
    """Law 1, of every turn on disk: what the engine was sent is the path, what it returned is what was sampled."""
    log = serving.logged()
    ends: dict[str | None, list[int]] = {None: []}
    for turn in _turns(sessions):
        logged = log.get(turn.call.request_id)
        sent = [*ends[turn.call.parent], *turn.call.context.tolist()]
        ends[turn.id] = [*sent, *turn.sampled.tolist()]
        if logged is not None and (logged.prompt != sent or list(logged.choices[0].ids) != turn.sampled.tolist()):
            yield turn.id


def _extends(turns: dict[str, Turn], before: str, later: str) -> bool:
    """A call that was recorded and not heard, and then asked again too late to be taken for a repeat, is a sibling."""
    turn = turns.get(later)
    if turn is None:
        return True  # counted as lost
    resampled = turn.call.fork is not None and turn.call.fork.reason is ForkReason.RESAMPLED
    return turn.call.parent == before and (turn.call.fork is None or resampled)
