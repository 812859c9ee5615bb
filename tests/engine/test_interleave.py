from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from stenograph.engine.interleave import interleave


class Source:
    """Gives what it is told to, when it is told to, and knows whether it was closed."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self._items: asyncio.Queue[str | Exception | None] = asyncio.Queue()

    def give(self, *items: str | Exception | None) -> None:
        for item in items:
            self._items.put_nowait(item)

    async def stream(self) -> AsyncGenerator[str, None]:
        try:
            while (item := await self._items.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed.set()


async def test_items_come_as_they_arrive_and_in_order() -> None:
    slow, quick = Source(), Source()
    merged = interleave([slow.stream(), quick.stream()])
    quick.give("q1", "q2", None)
    assert [await anext(merged), await anext(merged)] == ["q1", "q2"]
    slow.give("s1", None)
    assert [item async for item in merged] == ["s1"]


async def test_nothing_to_merge_is_nothing() -> None:
    nothing: list[AsyncGenerator[str, None]] = []
    assert [item async for item in interleave(nothing)] == []


async def test_an_error_of_one_ends_and_closes_all() -> None:
    good, bad = Source(), Source()
    good.give("g")
    merged = interleave([good.stream(), bad.stream()])
    assert await anext(merged) == "g"
    bad.give(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        await anext(merged)
    assert good.closed.is_set()
    assert bad.closed.is_set()


async def test_closing_it_closes_all() -> None:
    sources = [Source(), Source()]
    sources[0].give("x")
    async with aclosing(interleave([source.stream() for source in sources])) as merged:
        assert await anext(merged) == "x"
    for source in sources:
        assert source.closed.is_set()
