"""One streamed call, and when its words came."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

import msgspec

from stenograph.core import Value

LONGEST_LINE = 1 << 22
"""Bytes: an engine echoes the ids of the whole prompt in one event."""


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    """Of a completion."""
    delta: _Delta = msgspec.field(default_factory=_Delta)
    """Of a chat completion."""


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = msgspec.field(default_factory=list)


class Timed(Value):
    first: float
    """Seconds from the last byte of the request to the first word."""
    text: str


async def streamed(url: str, path: str, body: bytes) -> Timed:
    """On a connection of its own, which is there before the clock starts."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=LONGEST_LINE)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        writer.write(head.encode() + body)
        await writer.drain()
        return await _heard(reader, time.perf_counter())
    finally:
        writer.close()


async def _heard(reader: asyncio.StreamReader, started: float) -> Timed:
    if b" 200 " not in await reader.readline():
        raise RuntimeError((await reader.read(LONGEST_LINE)).decode(errors="replace"))
    words: list[tuple[float, str]] = []
    while not (line := await reader.readline()).startswith(b"data: [DONE]"):
        if not line:
            raise ConnectionError("the stream ended before it was complete")
        if line.startswith(b"data: ") and (word := _word(line[len(b"data: ") :])):
            words.append((time.perf_counter() - started, word))
    return Timed(words[0][0], "".join(word for _, word in words))


def _word(data: bytes) -> str:
    return "".join(
        choice.text or choice.delta.content or "" for choice in msgspec.json.decode(data, type=_Chunk).choices
    )
