"""Eight agents at once, each in a session of its own, and what they leave behind."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stenograph.core import Value
from stenograph.demo.habits import HABITS
from stenograph.demo.progress import Progress
from stenograph.errors import ConfigError
from stenograph.gateway import Gateway, Session
from stenograph.store.sqlite import SqliteReader
from stenograph.store.store import StoredSession

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

GROUP = "sums"
SUMS = ((58, 14), (36, 27), (71, 19))
"""The same for every rollout of the group, so that their rewards compare."""


class Played(Value):
    remembered: tuple[StoredSession, ...]
    """Each session as it stood in memory at the end."""
    answered: dict[str, bool]
    """By turn id: whether the store on disk had it at the moment when the agent had its answer."""


async def play(gateway: Gateway, store: Path, rollouts: int, progress: Progress) -> Played:
    answered: dict[str, bool] = {}
    sessions = [
        (name, gateway.session(f"{name}-{number}", group=GROUP, group_size=rollouts, metadata=_described(name)))
        for number, name in enumerate(itertools.islice(itertools.cycle(HABITS), rollouts), start=1)
    ]
    with SqliteReader(store) as disk:
        tasks = [
            asyncio.ensure_future(
                _roll_out(gateway.model, name, session, _witness(disk, session, answered, progress), progress)
            )
            for name, session in sessions
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            await _ended(tasks)
    return Played(tuple(session.record() for _, session in sessions), answered)


def _described(name: str) -> dict[str, str | None]:
    """For people who look at the samples."""
    return {"agent": name, "habit": inspect.getdoc(HABITS[name])}


async def _ended(tasks: Sequence[asyncio.Future[None]]) -> None:
    """One failure ends them all."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def _roll_out(
    model: str, name: str, session: Session, heard: Callable[[ChatCompletion], None], progress: Progress
) -> None:
    async with session.openai() as client:
        agent, right = HABITS[name](client, model, heard), 0
        with _failures_told(name):
            for a, b in SUMS:
                right += await agent.solve(a, b)
                progress.solved()
    await session.reward(right / len(SUMS))
    await session.finish()
    progress.finished()


@contextlib.contextmanager
def _failures_told(name: str) -> Iterator[None]:
    from openai import OpenAIError

    try:
        yield
    except OpenAIError as error:
        raise ConfigError(f"the demo broke off, a call of the {name} agent failed: {error}") from error


def _witness(
    disk: SqliteReader, session: Session, answered: dict[str, bool], progress: Progress
) -> Callable[[ChatCompletion], None]:
    """Looks, as another reader of the file, whether a turn is there when its answer is (law 5)."""

    def heard(completion: ChatCompletion) -> None:
        stored = disk.load(session.id)
        there = {turn.id for committed in stored.calls for turn in committed.turns} if stored else set()
        turn_ids = [str((choice.model_extra or {})["turn_id"]) for choice in completion.choices]
        answered.update({id: id in there for id in turn_ids})
        progress.answered(len(turn_ids), completion.usage.completion_tokens if completion.usage else 0)

    return heard
