"""The transport between the vendors' clients and the application in this process: what a caller may do on a port."""

from __future__ import annotations

import asyncio
import contextlib

import anyio
import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from stenograph.clients import InProcess

REQUEST = httpx2.Request("POST", "http://stenograph/", content=b"{}")
START = {"type": "http.response.start", "status": 200, "headers": []}
LAST = {"type": "http.response.body", "body": b"all"}


async def until_it_leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def test_a_caller_that_is_cancelled_at_the_end_of_a_stream_hears_of_its_own_cancellation() -> None:
    """openai gives a stream's end a tenth of a second, by a scope of anyio's, which knows its own by their message."""
    lingering = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await send(LAST)
        lingering.set()
        with contextlib.suppress(asyncio.CancelledError):
            await until_it_leaves(receive)
            return
        raise asyncio.CancelledError  # in words of its own, as `gather` may

    response = await InProcess(app).handle_async_request(REQUEST)
    with anyio.CancelScope() as scope:
        async for _ in response.aiter_raw():
            await lingering.wait()
            asyncio.get_running_loop().call_soon(scope.cancel)
    assert scope.cancelled_caught
    await response.aclose()


async def test_a_caller_gives_up_after_its_own_timeout() -> None:
    left = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await until_it_leaves(receive)
        left.set()

    async with httpx2.AsyncClient(transport=InProcess(app), timeout=0.001) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.post("http://stenograph/")
    assert left.is_set()
