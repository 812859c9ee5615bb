"""Several streams as one, each item as soon as it is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import TypeVar

Item = TypeVar("Item")


class _Ended:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


async def interleave(streams: Iterable[AsyncGenerator[Item, None]]) -> AsyncGenerator[Item, None]:
    """Ends when all have ended. The first error of one ends, and closes, all of them; so does closing this one."""
    arrivals: asyncio.Queue[Item | _Ended] = asyncio.Queue()
    pumps = [asyncio.create_task(_pump(stream, arrivals)) for stream in streams]
    try:
        open_streams = len(pumps)
        while open_streams:
            arrival = await arrivals.get()
            if not isinstance(arrival, _Ended):
                yield arrival
            elif arrival.error:
                raise arrival.error
            else:
                open_streams -= 1
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(stream: AsyncGenerator[Item, None], arrivals: asyncio.Queue[Item | _Ended]) -> None:
    try:
        async with aclosing(stream):
            async for item in stream:
                arrivals.put_nowait(item)
    except Exception as error:
        arrivals.put_nowait(_Ended(error))
    else:
        arrivals.put_nowait(_Ended())
