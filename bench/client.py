"""One connection of an agent, with next to no cost of its own: what is measured shares two cores with it.

A raw httptools protocol: aiohttp's client takes nearly twice the time, and httpx thirty times (ENGINES.md).
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httptools


class Client(asyncio.Protocol):
    """One request at a time. Use it as a context manager."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        assert address.port is not None
        self._host, self._port = address.hostname, address.port
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[bytes] | None = None

    async def __aenter__(self) -> Self:
        self._transport, _ = await asyncio.get_running_loop().create_connection(lambda: self, self._host, self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._transport:
            self._transport.close()

    async def post(self, path: str, body: bytes) -> bytes:
        return await self._call(b"POST", path, body)

    async def get(self, path: str) -> bytes:
        return await self._call(b"GET", path, b"")

    async def _call(self, method: bytes, path: str, body: bytes) -> bytes:
        """The body of a 200. Anything else is a failed run: there is nothing to measure."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        head = b"%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._transport.write(head % (method, path.encode(), self._host.encode(), len(body)) + body)
        answer = await self._answer
        if self._parser.get_status_code() != 200:
            raise RuntimeError(f"{path}: HTTP {self._parser.get_status_code()}: {answer.decode(errors='replace')}")
        return answer

    # -- what asyncio and httptools call -------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_result(b"".join(self._pieces))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server closed the connection in the middle of a call"))
