"""The vendors' own clients over an application in this process: a transport that streams, and sees callers leave.

The transports that come with HTTP clients collect the whole answer first: no token would stream, and closing a stream
would tell nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message

from stenograph.errors import ConfigError

if TYPE_CHECKING:
    import anthropic
    import openai

WANTED = "session.{0}() needs the vendor's own package: pip install 'stenograph[{0}]'"
try:
    import httpx2  # comes with either of the two
except ImportError as missing:
    raise ConfigError(WANTED.format("openai")) from missing


class InProcess(httpx2.AsyncBaseTransport):
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = _Exchange(self._app, request, await request.aread())
        return await exchange.response()


class _Exchange(httpx2.AsyncByteStream):
    def __init__(self, app: ASGIApp, request: httpx2.Request, body: bytes) -> None:
        self._request = request
        self._body: bytes | None = body
        self._closed = asyncio.Event()
        self._sent: asyncio.Queue[Message | None] = asyncio.Queue()
        self._patience: float | None = request.extensions.get("timeout", {}).get("read")
        """Seconds without a word after which the caller gives up, as it would on a port."""
        self._running = asyncio.ensure_future(self._run(app))

    async def response(self) -> httpx2.Response:
        try:
            start = await self._heard()
        except (asyncio.CancelledError, httpx2.ReadTimeout):
            await self.aclose()
            raise
        if start is None:
            self._running.result()
            raise RuntimeError("the application answered nothing")
        return httpx2.Response(start["status"], headers=start["headers"], stream=self, request=self._request)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._heard()
            if message is None:
                raise httpx2.RemoteProtocolError("the answer was broken off", request=self._request)
            if body := message.get("body"):
                yield body
            more = message.get("more_body", False)
        await asyncio.wait({self._running})  # whoever cancels the caller does not mean the application
        self._running.result()

    async def _heard(self) -> Message | None:
        try:
            async with asyncio.timeout(self._patience):
                return await self._sent.get()
        except TimeoutError as error:
            raise httpx2.ReadTimeout("no answer in time", request=self._request) from error

    async def aclose(self) -> None:
        self._closed.set()
        await asyncio.wait({self._running})

    async def _run(self, app: ASGIApp) -> None:
        url = self._request.url
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self._request.method,
            "headers": [(name.lower(), value) for name, value in self._request.headers.raw],
            "scheme": url.scheme,
            "path": url.path,
            "raw_path": url.raw_path.partition(b"?")[0],
            "query_string": url.query,
            "root_path": "",
            "server": (url.host, url.port),
            "client": ("127.0.0.1", 0),
        }
        try:
            await app(scope, self._receive, self._send)
        finally:
            self._sent.put_nowait(None)

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._closed.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self._sent.put_nowait(message)


def openai_client(app: ASGIApp, base_url: str, key: str, options: dict[str, Any]) -> openai.AsyncOpenAI:
    try:
        import openai
    except ImportError as missing:
        raise ConfigError(WANTED.format("openai")) from missing
    return openai.AsyncOpenAI(**{"base_url": base_url, "api_key": key, "http_client": _http(app), **options})


def anthropic_client(app: ASGIApp, base_url: str, key: str, options: dict[str, Any]) -> anthropic.AsyncAnthropic:
    try:
        import anthropic
    except ImportError as missing:
        raise ConfigError(WANTED.format("anthropic")) from missing
    return anthropic.AsyncAnthropic(**{"base_url": base_url, "api_key": key, "http_client": _http(app), **options})


def _http(app: ASGIApp) -> httpx2.AsyncClient:
    """Without a timeout of its own: how long an answer may take is for the vendor's client to say."""
    return httpx2.AsyncClient(transport=InProcess(app), timeout=None)
