"""A real `openai.AsyncOpenAI` over a managed server's session: nothing of the HTTP path is skipped, no port opened."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

import httpx2
import openai

from stenograph.clients import InProcess
from stenograph.gateway import HERE, Gateway, Session

Opened = Callable[[], Awaitable[tuple[Gateway, Session]]]
TOLD: Mapping[str, Mapping[str, Any]] = {
    "/chat/completions": {"return_token_ids": True, "logprobs": True},
    "/completions": {"return_token_ids": True, "logprobs": 0},
}
"""What is asked for in the caller's place, so that its answers have ids and logprobs without asking."""


class Managed(Protocol):
    """As much of a managed server as a client needs."""

    async def opened(self) -> tuple[Gateway, Session]: ...

    def reset(self) -> None: ...


class Door(httpx2.AsyncBaseTransport):
    """To the session that is current when a call is made: a reset opens another one, and clients stay."""

    def __init__(self, opened: Opened, base_url: str) -> None:
        self._opened = opened
        self._base = urlsplit(base_url).path.rstrip("/")

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        gateway, session = await self._opened()
        path = request.url.raw_path.decode()
        behind = f"/v1{path.removeprefix(self._base)}" if path.startswith(f"{self._base}/") else path
        request.url = request.url.copy_with(raw_path=f"/s/{session.id}{behind}".encode())
        request.headers["authorization"] = f"Bearer {session.api_key}"
        return await InProcess(gateway.app).handle_async_request(request)


def options_for(opened: Opened, base_url: str) -> dict[str, Any]:
    """Who samples tries again by itself where that helps; a second try from here would be a second sample."""
    http_client = httpx2.AsyncClient(transport=Door(opened, base_url), timeout=None)
    return {"base_url": base_url, "api_key": "in-process", "http_client": http_client, "max_retries": 0}


class ManagedClient(openai.AsyncOpenAI):
    """`AtroposManagedClient`: ids and logprobs are on its answers (`prompt_token_ids`, `choices[i].token_ids`,
    `choices[i].logprobs`) without asking."""

    def __init__(
        self, managed_server: Managed, model: str, base_url: str | httpx2.URL | None = None, **options: Any
    ) -> None:
        """`base_url`: what a library is to see. `options`: the SDK's own."""
        self.managed_server = managed_server
        self.model = model
        ours = options_for(managed_server.opened, str(base_url or f"{HERE}/v1"))
        super().__init__(**{**options, **ours, "max_retries": options.get("max_retries", ours["max_retries"])})
        for calls in (self.chat.completions, self.completions):
            calls.create = functools.partial(calls.create, model=model)  # type: ignore[method-assign,assignment]

    def reset(self) -> None:
        self.managed_server.reset()

    async def close(self) -> None:
        """There is no connection to close, and the managed server is its owner's."""

    def copy(self, **options: Any) -> Self:
        """Of the same session."""
        own = {"managed_server": self.managed_server, "model": self.model}
        return super().copy(**options, _extra_kwargs=own)

    with_options = copy

    async def _prepare_options(self, options: Any) -> Any:
        """The SDK's own hook, before a body is written."""
        told = TOLD.get(options.url)
        if told is not None and isinstance(options.json_data, dict):
            options.json_data = {**told, **options.json_data}
        return options
