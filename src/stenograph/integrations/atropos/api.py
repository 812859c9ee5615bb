"""Atropos' trajectory API over HTTP, as long as it is one process.

The API keeps everything in memory and says nothing that tells one process from the next. So all is asked over one
connection, kept warm: where that breaks, whoever answers next has to be told anew who we are.
"""

from __future__ import annotations

import asyncio
import gzip
from types import SimpleNamespace, TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from stenograph.core import JSON, Value
from stenograph.engine.http import root_of, without_password
from stenograph.errors import ConfigError

COMPRESSED_FROM = 1024
"""Bytes. Below, gzip saves nothing."""
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0
"""It parses a group of long sequences on its only thread, and everybody else's before ours."""
NOT_ITS_OWN = frozenset({408, 421, 425, 429, 502, 503, 504})
"""What a proxy says in its place, or while it starts: nothing about the body."""
WORDS_AT_MOST = 500

Answer = TypeVar("Answer")


class Away(Exception):
    """It cannot be reached, or what answers there is something else. Whether it took what was sent is unknown."""

    def __init__(self, words: str, *, unheard: bool = False) -> None:
        super().__init__(words)
        self.unheard = unheard
        """Except that here nobody was there to take it."""


class Refusal(Exception):
    """It read the body, and answered with an error: 4xx, and it has dropped it; 500, and it failed on it."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"HTTP {status}: {words}")
        self.status = status
        self.words = words


class Registered(Value):
    status: str
    """`success`, or `wait for trainer to start`."""
    env_id: int | None = None
    wandb_name: str | None = None
    """The name that we asked for and, behind `_`, how many of that name this process had before."""


class Received(Value):
    status: str
    """`received`, or `buffered`: it waits for others of our groups to make up the size that we registered."""
    buffer_size: int = 0
    """Sequences that wait so, ours, after this one."""
    buffered: int = 0
    """Of a list: how many of its groups."""
    last_buffer_size: int = 0


class Status(Value):
    current_step: int
    """Batches that were formed, whether the trainer has fetched them or not."""
    queue_size: int
    """Groups that are in no batch yet, of all environments."""


class Info(Value):
    max_token_len: int
    """The trainer's. Not positive: it takes any."""


def checked(url: str) -> str:
    try:
        root_of(url)
    except ConfigError as error:
        detail = f"a trajectory API's address looks like http://HOST:PORT, not {without_password(url)}"
        raise ConfigError(detail) from error
    return url


class Api:
    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self.label = without_password(self._url)

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=1),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=ANSWER_SECONDS),
            trace_configs=[_single_connection()],
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def register(self, body: JSON) -> Registered:
        return await self._asked("POST", "/register-env", Registered, msgspec.json.encode(body))

    async def disconnect(self, env_id: int) -> None:
        await self._asked("POST", "/disconnect-env", dict, msgspec.json.encode({"env_id": env_id}))

    async def info(self) -> Info:
        return await self._asked("GET", "/info", Info)

    async def status(self) -> Status:
        return await self._asked("GET", "/status", Status)

    async def send(self, body: bytes, *, several: bool) -> Received:
        received = await self._asked("POST", "/scored_data_list" if several else "/scored_data", Received, body)
        if received.status not in ("received", "buffered"):
            raise Away(f"{self.label} answers a group with {received.status!r}")
        return received

    async def _asked(self, method: str, path: str, shape: type[Answer], body: bytes | None = None) -> Answer:
        headers, data = await _packed(body) if body is not None else ({}, None)
        try:
            async with self._session.request(method, self._url + path, data=data, headers=headers) as response:
                said = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            unheard = isinstance(error, aiohttp.ClientConnectorError)
            raise Away(
                f"{self.label} does not answer: {str(error) or type(error).__name__}", unheard=unheard
            ) from error
        if response.status in NOT_ITS_OWN or response.status > 500:
            raise Away(f"{self.label} answers {path} with HTTP {response.status}")
        if response.status >= 400:
            raise Refusal(response.status, said.decode(errors="replace")[:WORDS_AT_MOST])
        try:
            return msgspec.json.decode(said, type=shape)
        except msgspec.DecodeError as error:
            raise Away(f"what answers at {self.label} is no trajectory API: {path}: {error}") from error


async def _packed(body: bytes) -> tuple[dict[str, str], bytes]:
    headers = {"Content-Type": "application/json"}
    if len(body) <= COMPRESSED_FROM:
        return headers, body
    return {**headers, "Content-Encoding": "gzip"}, await asyncio.to_thread(gzip.compress, body, 6)


def _single_connection() -> aiohttp.TraceConfig:
    """Without it aiohttp would open the next one by itself, and ask another process as if it were the same."""
    made = 0

    async def opening(session: aiohttp.ClientSession, context: SimpleNamespace, params: Any) -> None:
        nonlocal made
        made += 1
        if made > 1:
            raise aiohttp.ClientConnectionError("the connection is gone")

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_start.append(opening)
    return trace
