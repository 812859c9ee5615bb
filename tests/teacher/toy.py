"""A teacher whose every word can be checked: it follows from all ids before a position, and from nothing else."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import numpy as np

from stenograph.core import Delta, EngineInfo, Ids, Request, Sample, Teacher, Teaching
from stenograph.engine.scoring import FIRST, Scored
from stenograph.errors import EngineError
from stenograph.session.tree import Tree
from stenograph.store.store import Store
from stenograph.teacher.opening import Reading
from stenograph.teacher.teachers import Teachers
from stenograph.teacher.tutor import Tutor

VOCABULARY = 2**31
CONTEXT = 1000


def odds(before: Sequence[int], id: int) -> float:
    """Below all of the likeliest."""
    return -4 - (zlib.crc32(np.array([*before, id], np.int32).tobytes()) % 4000) / 1024


def likeliest(before: Sequence[int], count: int) -> list[tuple[int, float]]:
    seed = zlib.crc32(np.array(before, np.int32).tobytes())
    return [((seed + 7919 * rank) % (VOCABULARY - 1), -(rank + 1) / 8 - seed % 64 / 1024) for rank in range(count)]


class Toy:
    """Counts what it is asked. `fails`: what goes wrong with a sequence, if anything does."""

    def __init__(self, fails: Callable[[list[int]], Exception | None] = lambda ids: None) -> None:
        self.fails = fails
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[tuple[list[int], int]] = []
        """Each sequence, and where its scores begin."""
        self.answered: list[tuple[list[int], int]] = []
        self.at_once = 0
        self.most_at_once = 0

    async def score(self, ids: Ids, top_k: int, start: int = FIRST) -> Scored:
        sequence: list[int] = ids.tolist()
        self.asked.append((sequence, start))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0)
            await self.gate.wait()
            if (failure := self.fails(sequence)) is not None:
                raise failure
        finally:
            self.at_once -= 1
        self.answered.append((sequence, start))
        return said(sequence, top_k, start)

    @property
    def positions(self) -> int:
        """How many rows it had to make."""
        return sum(len(ids) - start for ids, start in self.answered)

    async def start(self) -> EngineInfo:
        return info()

    def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        raise EngineError("it only scores")

    async def healthy(self) -> bool:
        return True

    async def close(self) -> None: ...


def info(**changes: Any) -> EngineInfo:
    known: dict[str, Any] = {"max_model_len": CONTEXT, "logprob_kind": "raw", "max_top_logprobs": 20}
    return EngineInfo(name="toy", kind="toy", model="toy", supports=frozenset(), **known | changes)


def said(ids: list[int], top_k: int, start: int) -> Scored:
    rows = [likeliest(ids[:place], top_k) for place in range(start, len(ids))]
    shape = (len(rows), top_k)
    return Scored(
        start,
        np.array([odds(ids[:place], ids[place]) for place in range(start, len(ids))], np.float32),
        np.array([[id for id, _ in row] for row in rows], np.int32).reshape(shape),
        np.array([[logprob for _, logprob in row] for row in rows], np.float32).reshape(shape),
    )


def teacher(**changes: Any) -> Teacher:
    known: dict[str, Any] = {"name": "toy", "model": "toy", "weight": 1.0, "top_k": 2, "positions": "sampled"}
    return Teacher(**known | changes)


def tutor(
    engine: Toy,
    facts: Teacher | None = None,
    at_once: int = 3,
    pauses: Sequence[float] = (0, 0),
    vocabulary: int = VOCABULARY,
) -> Tutor:
    return Tutor(facts or teacher(), engine, info(), vocabulary, at_once=at_once, pauses=pauses)


def teachers(store: Store, engine: Toy, facts: Teacher | None = None, **options: Any) -> Teachers:
    return Teachers(store, [tutor(engine, facts, **options)], None)


def readings(samples: Sequence[Sample]) -> list[Reading]:
    """For teachers that read what the student read: those never look at the tree."""
    return [Reading(sample, Tree(), 0.0) for sample in samples]


def expected(tokens: list[int], asked: Sequence[bool], top_k: int) -> tuple[list[Any], list[Any], list[float]]:
    """Row by row, from first principles: what `Teaching` has to be."""
    ids: list[Any] = []
    logprobs: list[Any] = []
    own: list[float] = []
    for place, wanted in enumerate(asked):
        row = likeliest(tokens[:place], top_k) if wanted else [(-1, 0.0)] * top_k
        ids.append([id for id, _ in row])
        logprobs.append([float(np.float32(logprob)) for _, logprob in row])
        own.append(float(np.float32(odds(tokens[:place], tokens[place]))) if wanted else 0.0)
    return ids, logprobs, own


def plain(teaching: Teaching) -> tuple[list[Any], list[Any], list[float]]:
    return teaching.token_ids.tolist(), teaching.logprobs.tolist(), teaching.token_logprobs.tolist()
