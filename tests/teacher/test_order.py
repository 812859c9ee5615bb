"""Who waits for whom, beside what one would work out by looking at every pair."""

from __future__ import annotations

import asyncio

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from stenograph.core import Ids
from stenograph.teacher import order
from stenograph.teacher.order import common, in_order, leaders, sorting

sequences = st.lists(st.lists(st.integers(0, 2), max_size=6).map(lambda ids: np.array(ids, np.int32)), max_size=7)


@given(sequences)
def test_each_waits_for_the_first_that_shares_the_most(found: list[Ids]) -> None:
    ordered = sorted(found, key=sorting)
    assert [one.tolist() for one in ordered] == sorted(one.tolist() for one in found)
    before = order.WORTH
    order.WORTH = 1
    try:
        told = leaders(ordered)
    finally:
        order.WORTH = before
    for place, leader in enumerate(told):
        shared = [common(ordered[earlier], ordered[place]) for earlier in range(place)]
        most = max(shared, default=0)
        assert leader == (shared.index(most) if most else None)


@given(sequences, st.integers(1, 3))
def test_every_one_is_worked_on_once(found: list[Ids], at_once: int) -> None:
    done: list[int] = []

    async def work(place: int) -> None:
        await asyncio.sleep(0)
        done.append(place)

    asyncio.run(in_order(found, at_once, work))
    assert sorted(done) == list(range(len(found)))
    if at_once == 1:
        assert [found[place].tolist() for place in done] == sorted(one.tolist() for one in found)


async def test_a_family_waits_for_its_first() -> None:
    shared = np.arange(40, dtype=np.int32)
    family = [np.append(shared, np.int32(last)) for last in (9, 5, 7)]
    begun: list[int] = []
    first, two = asyncio.Event(), asyncio.Event()

    async def work(place: int) -> None:
        begun.append(place)
        if len(begun) == 2:
            two.set()
        if place == 1:
            await first.wait()

    running = asyncio.ensure_future(in_order([*family, np.arange(50, 60, dtype=np.int32)], 8, work))
    await two.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert begun == [1, 3]
    first.set()
    await running
    assert begun == [1, 3, 2, 0]


async def test_an_error_ends_all_of_it() -> None:
    async def work(place: int) -> None:
        if place == 0:
            raise RuntimeError("a bug")
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="a bug"):
        await in_order([np.array([place], np.int32) for place in range(3)], 3, work)
