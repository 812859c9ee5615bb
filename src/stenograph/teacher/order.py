"""In which order sequences are scored, so that what they share is computed once. The order itself is pure.

Sorted by their ids, sequences that share a beginning stand together, the shorter before the longer. Each waits for the
first of those that share its longest beginning: from then on an engine has that in its cache. All others run side by
side, as many as the engine may have at once; one at a time they run in that very order.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from stenograph.core import Ids

WORTH = 16
"""Shared tokens for which it is worth to wait: vLLM's caches go by blocks of so many."""


def leaders(sequences: Sequence[Ids]) -> list[int | None]:
    """For each of the sorted sequences, the first one that shares as much with it as any before it; None: nothing worth
    waiting for."""
    found: list[int | None] = []
    ranges: list[tuple[int, int]] = []
    for place, sequence in enumerate(sequences):
        shared = common(sequences[place - 1], sequence) if place else 0
        start = max(place - 1, 0)
        while ranges and ranges[-1][0] >= shared:
            start = ranges.pop()[1]
        ranges.append((shared, start))
        found.append(start if shared >= WORTH else None)
    return found


def common(one: Ids, other: Ids) -> int:
    """How many tokens the two begin with alike."""
    shorter = min(len(one), len(other))
    differing = np.flatnonzero(one[:shorter] != other[:shorter])
    return int(differing[0]) if len(differing) else shorter


def sorting(sequence: Ids) -> bytes:
    """Ids are never negative, so that their bytes, the highest first, sort as they do."""
    return sequence.astype(">i4").tobytes()


async def in_order(sequences: Sequence[Ids], at_once: int, work: Callable[[int], Awaitable[None]]) -> None:
    """`work` is called with the place of each sequence. It reports what goes wrong itself: an error that it raises ends
    all of it."""
    order = sorted(range(len(sequences)), key=lambda place: sorting(sequences[place]))
    followers: dict[int | None, list[int]] = defaultdict(list)
    for rank, leader in enumerate(leaders([sequences[place] for place in order])):
        followers[leader].append(rank)
    ready, running = list(followers[None]), dict[asyncio.Future[None], int]()
    try:
        while ready or running:
            while ready and len(running) < at_once:
                rank = heapq.heappop(ready)
                running[asyncio.ensure_future(work(order[rank]))] = rank
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                for follower in followers[running.pop(task)]:
                    heapq.heappush(ready, follower)
                task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
