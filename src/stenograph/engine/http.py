"""Engines over HTTP: one pool of connections, events out of a stream, and every lower exception translated, once.

What an engine *answers* is for its adapter to judge, so an error of the engine's own comes out as a `Refusal`. That it
does not answer, or stops in the middle, is the same for all of them and is settled here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import aiohttp
import msgspec

from stenograph.core import JSON
from stenograph.errors import (
    ConfigError,
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    EvidenceError,
    Overloaded,
    StenographError,
)

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0
"""What an engine is, and whether it is well, it knows without work: one that says nothing for so long is stuck."""
KEEP_ALIVE_SECONDS = 3.0
"""uvicorn, under most engines, drops an idle connection after 5 s; taking one up at that moment would fail a call."""
WORDS_AT_MOST = 500
"""Of an error's text that is no JSON: a proxy's page of HTML need not be passed on whole."""


class Refusal(Exception):
    """The engine answered with an error, over HTTP or in the middle of a stream. Never leaves the engine's room."""

    def __init__(self, status: int, words: str, param: str | None = None, retry_after: float = 1.0) -> None:
        super().__init__(f"HTTP {status}: {words}")
        self.status = status
        self.words = words
        self.param = param
        self.retry_after = retry_after


class ErrorBody(msgspec.Struct):
    """OpenAI's, which every engine took over."""

    message: str
    param: str | None = None
    code: JSON = None

    def refusal(self, status: int, retry_after: float = 1.0) -> Refusal:
        return Refusal(status, self.message, self.param, retry_after)


class _ErrorAnswer(msgspec.Struct):
    error: ErrorBody


def root_of(where: str) -> str:
    """A server's root, from its root or from its OpenAI base URL: a `/v1` that ends the path is dropped."""
    try:
        parts = urlsplit(where)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        raise ConfigError(f"an engine's address looks like http://HOST:PORT, not {without_password(where)}")
    return parts._replace(path=parts.path.rstrip("/").removesuffix("/v1").rstrip("/")).geturl()


def without_password(where: str) -> str:
    """For messages. What stands before an `@` may be a secret."""
    scheme, slashes, rest = where.rpartition("//")
    return scheme + slashes + rest.rpartition("@")[2]


class Http:
    """A server and our connections to it. Usable again after any failure."""

    def __init__(self, name: str, where: str, api_key: str | None, timeout: float, *, reconnect: bool = False) -> None:
        """`timeout`: seconds of silence. A long generation is no fault, a mute one is. `reconnect`: a connection for
        each call, for a server that drops it behind an answer without having said so."""
        self.root = root_of(where)
        self.label = f"{name} at {without_password(self.root)}"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=timeout)
        self._reconnect = reconnect
        self._session: aiohttp.ClientSession | None = None

    async def get(self, path: str) -> bytes:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                response = await self._open("GET", path)
                with self._reading():
                    return await response.read()
        except TimeoutError as error:
            raise EngineTimeout(f"{self.label} took a connection and says nothing to GET {path}") from error

    async def post(self, path: str, body: bytes = b"{}") -> bytes:
        response = await self._open("POST", path, body)
        with self._reading():
            return await response.read()

    async def healthy(self, path: str) -> bool:
        try:
            await self.get(path)
        except (EngineError, Refusal):
            return False
        return True

    async def events(self, path: str, body: bytes) -> AsyncGenerator[bytes, None]:
        """The data of each server-sent event. Closed early, it closes the connection: that is how a call is aborted."""
        response = await self._open("POST", path, body)
        lines = EventLines()
        try:
            with self._reading():
                async for chunk in response.content.iter_any():
                    for data in lines.feed(chunk):
                        yield data
            if lines.pending:
                raise EvidenceError(f"{self.label} ended its answer in the middle of a line")
        finally:
            response.close()

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    async def _open(self, method: str, path: str, body: bytes | None = None) -> aiohttp.ClientResponse:
        headers = self._headers | ({"Content-Type": "application/json"} if body else {})
        with self._connecting():
            response = await self._pool().request(
                method, self.root + path, data=body, headers=headers, allow_redirects=False
            )
        if response.status != 200:
            with self._reading():
                raise _refusal(response, await response.read())
        return response

    def _pool(self) -> aiohttp.ClientSession:
        """Without aiohttp's limit of 100 connections: how many calls run at once is the pool's to decide."""
        if self._session is None:
            keep_alive = None if self._reconnect else KEEP_ALIVE_SECONDS
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=keep_alive, force_close=self._reconnect)
            self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
        return self._session

    @contextmanager
    def _connecting(self) -> Generator[None, None, None]:
        """Until the first byte of an answer nothing was generated that anyone saw: another engine may take the call."""
        try:
            yield
        except aiohttp.SocketTimeoutError as error:
            raise EngineTimeout(f"{self.label} took the call and said nothing for too long") from error
        except (aiohttp.ClientError, OSError) as error:
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            raise EngineUnavailable(
                f"{self.label} does not answer ({str(cause) or type(cause).__name__}): is it running?"
            ) from error

    @contextmanager
    def _reading(self) -> Generator[None, None, None]:
        try:
            yield
        except TimeoutError as error:
            raise EngineTimeout(f"{self.label} fell silent in the middle of its answer") from error
        except (aiohttp.ClientError, OSError) as error:
            raise EngineError(f"{self.label} broke off in the middle of its answer") from error


class EventLines:
    """Server-sent events out of whatever pieces the network makes of them. An echoed prompt makes a long line, and the
    experts of a long reply a longer one: each byte is looked at once."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        """What came behind the last line break."""

    @property
    def pending(self) -> bytes:
        return b"".join(self._begun)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        head, *lines = chunk.split(b"\n")
        self._begun.append(head)
        if not lines:
            return iter(())
        ended = [self.pending, *lines[:-1]]
        self._begun = [lines[-1]]
        return (line[len(b"data:") :].strip() for line in ended if line.startswith(b"data:"))


def blamed(label: str, refusal: Refusal) -> StenographError:
    """An error that has nothing to do with what was asked for, whichever engine it is from."""
    said = f"{label} answers {refusal}"
    match refusal.status:
        case 429:
            return Overloaded(said, retry_after=refusal.retry_after)
        case 503:
            return EngineUnavailable(said)
        case 408 | 504:
            return EngineTimeout(said)
        case _:
            return EngineError(said)


def _refusal(response: aiohttp.ClientResponse, body: bytes) -> Refusal:
    after = response.headers.get("Retry-After", "")
    retry_after = float(after) if after.isdecimal() else 1.0
    try:
        return msgspec.json.decode(body, type=_ErrorAnswer).error.refusal(response.status, retry_after)
    except msgspec.DecodeError:
        words = body[:WORDS_AT_MOST].decode(errors="replace").strip() or response.reason or "no reason given"
        return Refusal(response.status, words, retry_after=retry_after)
