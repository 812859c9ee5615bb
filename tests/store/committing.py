"""`python -m tests.store.committing FOLDER RUN` commits for ever and prints each call's id once its commit returned.

It is there to be killed: whoever reads an id here may rely on it.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

import msgspec
import numpy as np

from stenograph.core import Part
from stenograph.store.sqlite import SqliteStore
from stenograph.store.store import TurnsCommitted
from tests.store.nouns import committed, facts

TASKS = 8
"""At a time, so that a kill meets groups of them."""

CALLS = 10
"""A session."""


def session_of(id: str) -> str:
    return id.partition("-")[0]


def promised(id: str) -> TurnsCommitted:
    """Two choices of two parts; every number in it follows from the id."""
    made = committed(id, n=2, session=session_of(id), context=np.frombuffer(id.encode() * 4, np.int32))
    turns = (msgspec.structs.replace(turn, parts=(_part(turn.id, 0), _part(turn.id, 1))) for turn in made.turns)
    return TurnsCommitted(tuple(turns))


def _part(turn: str, place: int) -> Part:
    seed = np.random.default_rng([*turn.encode(), place])
    ids = seed.integers(0, 100_000, 40, dtype=np.int32)
    return Part(ids, -seed.random(40, dtype=np.float32), "vllm-0", "vllm", "raw")


async def commit_for_ever(store: SqliteStore, name: str) -> None:
    for number in itertools.count():
        id = f"{name}.{number // CALLS}-{number}"
        await store.commit([facts(session_of(id), touched_at=float(number)), promised(id)])
        print(id, flush=True)


async def main(folder: Path, run: str) -> None:
    store = SqliteStore(folder)
    await asyncio.gather(*(commit_for_ever(store, f"{run}.{task}") for task in range(TASKS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
