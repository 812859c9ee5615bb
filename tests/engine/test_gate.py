from __future__ import annotations

import asyncio
from collections.abc import Sequence

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from stenograph.core import Request
from stenograph.engine.gate import Gate
from stenograph.errors import Overloaded
from tests.engine.streams import request


def call(session_id: str, n: int = 1) -> Request:
    return msgspec.structs.replace(request(n=n), session_id=session_id)


class Crowd:
    """Calls that pass a gate, one step at a time."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.inside: list[str] = []
        self.order: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *calls: tuple[str, str, int]) -> None:
        for name, session_id, n in calls:
            self._leave[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._pass(name, call(session_id, n)))
            await asyncio.sleep(0)

    async def _pass(self, name: str, one: Request) -> None:
        async with self.gate.passage(one):
            self.inside.append(name)
            self.order.append(name)
            await self._leave[name].wait()
            self.inside.remove(name)

    async def go(self, *names: str) -> None:
        for name in names:
            self._leave[name].set()
            for _ in range(5):
                await asyncio.sleep(0)


async def test_sessions_take_turns() -> None:
    """One session's hundred calls do not keep another's one waiting."""
    crowd = Crowd(Gate(1, 100))
    await crowd.come(("a1", "a", 1), ("a2", "a", 1), ("a3", "a", 1), ("b1", "b", 1), ("c1", "c", 1), ("b2", "b", 1))
    await crowd.go("a1", "a2", "b1", "c1", "a3", "b2")
    assert crowd.order == ["a1", "a2", "b1", "c1", "a3", "b2"]


async def test_beyond_its_room_it_refuses() -> None:
    gate = Gate(1, 1)
    crowd = Crowd(gate)
    await crowd.come(("a", "a", 1), ("b", "b", 1))
    with pytest.raises(Overloaded) as refused:
        async with gate.passage(call("c")):
            pass
    assert refused.value.status == 429
    assert refused.value.retry_after > 0
    await crowd.go("a", "b")
    assert (gate.running, gate.waiting) == (0, 0)


async def test_who_gives_up_makes_room() -> None:
    gate = Gate(2, 10)
    crowd = Crowd(gate)
    await crowd.come(("a", "a", 2), ("wide", "b", 2), ("c", "c", 1))
    crowd.tasks["wide"].cancel()
    await asyncio.wait([crowd.tasks["wide"]])
    assert gate.waiting == 1
    await crowd.go("a")
    assert crowd.inside == ["c"]
    await crowd.go("c")
    assert (gate.running, gate.waiting) == (0, 0)


async def test_who_gives_up_just_as_it_is_let_in_makes_room_too() -> None:
    gate = Gate(1, 10)
    crowd = Crowd(gate)
    await crowd.come(("a", "a", 1), ("b", "b", 1), ("c", "c", 1))
    crowd._leave["a"].set()
    await asyncio.sleep(0)
    crowd.tasks["b"].cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert crowd.inside == ["c"]
    await crowd.go("c")
    assert gate.running == 0


CALLS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 6)), min_size=1, max_size=12)


@given(calls=CALLS, width=st.integers(1, 4), leaving=st.randoms())
def test_never_wider_never_stuck(calls: Sequence[tuple[str, int]], width: int, leaving: object) -> None:
    async def play() -> None:
        gate = Gate(width, 100)
        crowd = Crowd(gate)
        sizes = {f"{place}": min(n, width) for place, (_, n) in enumerate(calls)}
        await crowd.come(*((f"{place}", session_id, n) for place, (session_id, n) in enumerate(calls)))
        while crowd.inside:
            assert sum(sizes[name] for name in crowd.inside) == gate.running <= width
            await crowd.go(leaving.choice(crowd.inside))  # type: ignore[attr-defined]
        assert len(crowd.order) == len(calls)
        assert (gate.running, gate.waiting) == (0, 0)
        for session_id in "abc":
            own = [name for name in crowd.order if calls[int(name)][0] == session_id]
            assert own == sorted(own, key=int)

    asyncio.run(play())
