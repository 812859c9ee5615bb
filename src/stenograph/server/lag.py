"""How late this process is to what it means to do: the first thing to look at where everything is slow at once.

One thread serves every call. What holds it up for long (a render, a huge body, a machine without a core to spare) holds
up all of them, and shows here and nowhere else.
"""

from __future__ import annotations

import asyncio

from prometheus_client import Histogram

EVERY = 0.05
"""Seconds between two looks: often enough that a hold-up of that length is mostly seen, and too seldom to cost."""


async def watch(lag: Histogram) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + EVERY
        await asyncio.sleep(EVERY)
        lag.observe(max(0.0, loop.time() - due))
