"""One HTTP exchange: a bounded body in, an answer out, and whether the caller is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from stenograph.errors import CallerError, StenographError, TooLarge


class Gone(Exception):
    """The caller went away: no error of ours."""


async def bounded_body(receive: Receive, headers: Mapping[str, str], limit: int) -> bytes:
    """What is too long is read to its end all the same, and let go: a caller that is still sending would find its
    connection broken, and no answer."""
    encoding = headers.get("content-encoding", "").strip().lower()
    pieces: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        piece = message.get("body", b"")
        size += len(piece)
        if size <= limit:
            pieces.append(piece)
        more = message.get("more_body", False)
    if size > limit:
        raise TooLarge(f"the body is larger than {limit} bytes")
    if encoding not in ("", "identity"):
        raise CallerError(f"the body is compressed (Content-Encoding: {encoding}): send it as it is")
    return b"".join(pieces)


class Connection:
    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers: dict[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        self._receive = receive
        self._send = send
        self.started = False
        """The status is out: an error can only be told in the stream now."""
        self._spoke_at = asyncio.get_running_loop().time()

    async def body(self, limit: int) -> bytes:
        return await bounded_body(self._receive, self.headers, limit)

    async def while_connected(self, answering: Coroutine[Any, Any, None]) -> None:
        """Runs `answering` to its end, or raises `Gone` as soon as the caller has left."""
        answer = asyncio.ensure_future(answering)
        watch = asyncio.ensure_future(self._left())
        try:
            await asyncio.wait({answer, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise Gone
            answer.result()
        finally:
            for task in (answer, watch):
                task.cancel()
            await asyncio.gather(answer, watch, return_exceptions=True)

    async def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        await self.start(status, {**headers, "content-length": str(len(body))})
        await self._send({"type": "http.response.body", "body": body})

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        self.started = True
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        start: Message = {"type": "http.response.start", "status": status, "headers": pairs}
        await self._send(start)

    async def more(self, piece: bytes) -> None:
        self._spoke_at = asyncio.get_running_loop().time()
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def last(self, piece: bytes) -> None:
        await self._send({"type": "http.response.body", "body": piece})

    def rest_of(self, patience: float | None) -> float | None:
        """How many seconds of it are left since something went out."""
        silent = asyncio.get_running_loop().time() - self._spoke_at
        return None if patience is None else max(0.0, patience - silent)

    async def _left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def error_headers(error: StenographError) -> dict[str, str]:
    retry_after = getattr(error, "retry_after", None)
    return {} if retry_after is None else {"retry-after": f"{max(1, round(retry_after))}"}
