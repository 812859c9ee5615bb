"""The floor: the least that any proxy does. It parses the body and forwards it, and hands back what comes.

The fastest server and client of ENGINES.md, no framework, no checks, no record.
"""

from __future__ import annotations

import sys

import aiohttp
import msgspec
from starlette.types import Receive, Scope, Send

from bench.listening import body_of, listen

JSON = {"Content-Type": "application/json"}


class Floor:
    """ASGI."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await body_of(receive)
        msgspec.json.decode(body)
        async with self._pool().post(self._engine + scope["path"], data=body, headers=JSON) as answer:
            kind = answer.headers["content-type"].encode()
            headers = [(b"content-type", kind)]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            async for piece in answer.content.iter_any():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body"})

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return self._session


if __name__ == "__main__":
    listen(Floor(sys.argv[1]))
