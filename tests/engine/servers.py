"""Servers on loopback: the scripted engine behind HTTP, and one that says exactly the bytes it is told to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import uvicorn

from stenograph.engine.scripted import ScriptedEngine
from stenograph.engine.scripted_server import ScriptedServer

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LENGTH = b"content-length:"
LAST_CHUNK = b"0\r\n\r\n"


@asynccontextmanager
async def listening(application: Any, port: int = 0) -> AsyncIterator[str]:
    """uvicorn without its main loop, which looks every tenth of a second whether it is to end."""
    listener = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(application, log_level="critical", lifespan="off")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await server.shutdown(sockets=[listener])


def serving(engine: ScriptedEngine, port: int = 0, *, scale_out: bool = False) -> AbstractAsyncContextManager[str]:
    return listening(ScriptedServer(engine, scale_out=scale_out).application, port)


class Wire:
    """Answers every request with the same bytes, then closes the connection, or holds it until the caller goes."""

    def __init__(self, answer: bytes, hold: bool) -> None:
        self.url = ""
        self.requests: list[bytes] = []
        self.heard = asyncio.Event()
        """A request is there, whole."""
        self.gone = asyncio.Event()
        """The caller closed its connection first."""
        self._talks: list[asyncio.Task[None]] = []
        self.answer = answer
        self._hold = hold

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._talks.append(asyncio.create_task(self._talk(reader, writer)))

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((int(line[15:]) for line in head.splitlines() if line.lower().startswith(LENGTH)), 0)
            self.requests.append(head + await reader.readexactly(length))
            self.heard.set()
            writer.write(self.answer)
            await writer.drain()
            if self._hold and not await reader.read(1):
                self.gone.set()
            writer.close()
            await writer.wait_closed()

    async def silence(self) -> None:
        await asyncio.gather(*self._talks)


@asynccontextmanager
async def saying(answer: bytes, *, hold: bool = False) -> AsyncIterator[Wire]:
    wire = Wire(answer, hold)
    async with await asyncio.start_server(wire.talk, "127.0.0.1", 0) as server:
        wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield wire
        await wire.silence()


class Relay:
    """Passes everything on, both ways, and keeps what the server said."""

    def __init__(self, port: int) -> None:
        self.url = ""
        self.heard = bytearray()
        self._port = port

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, onward = await asyncio.open_connection("127.0.0.1", self._port)
        there = asyncio.create_task(_pass_on(reader, onward, bytearray()))
        await _pass_on(upstream, writer, self.heard)
        await there


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
    with suppress(ConnectionError):
        while some := await reader.read(1 << 16):
            kept += some
            writer.write(some)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def relaying(url: str) -> AsyncIterator[Relay]:
    relay = Relay(int(url.rpartition(":")[2]))
    async with await asyncio.start_server(relay.talk, "127.0.0.1", 0) as server:
        relay.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield relay


def chunked(*pieces: bytes) -> bytes:
    """A streamed answer that was broken off: `LAST_CHUNK` is what would end it."""
    return OK + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def plain(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
