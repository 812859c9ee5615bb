"""The trajectory API as it is on the wire: it can die, come back without its memory, and misbehave on command."""

from __future__ import annotations

import asyncio
import gzip
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler


class FakeApi:
    """Its memory is its process': `restart` loses it."""

    def __init__(self) -> None:
        self.groups: list[dict[str, Any]] = []
        """What it took, in this life."""
        self.heard: list[tuple[str, dict[str, str], bytes]] = []
        """Every body, in all lives: path, headers, as it came."""
        self.sick: deque[web.Response | None] = deque()
        """What the next groups are answered; None: nothing, the connection breaks. Then it is well again."""
        self.envs: list[dict[str, Any]] = []
        self.left: list[int] = []
        self.asked_to_register = 0
        self.looks = 0
        self.looked_at = 0
        """How many groups there were at the latest."""
        self.started = True
        """The trainer has."""
        self.longest = -1
        self.step = 0
        self.queued = 0
        self._asked = asyncio.Event()
        self._port = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        app = web.Application(client_max_size=1 << 30, middlewares=[self._noted])
        app.router.add_post("/register-env", self._register)
        app.router.add_post("/disconnect-env", self._disconnect)
        app.router.add_get("/info", self._info)
        app.router.add_get("/status", self._status)
        app.router.add_post("/scored_data", self._scored)
        app.router.add_post("/scored_data_list", self._scored)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def die(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()
        self._runner = None
        self.groups, self.envs, self.step, self.queued = [], [], 0, 0

    async def until(self, done: Callable[[], bool]) -> None:
        """Looked at after each call."""
        async with asyncio.timeout(20):
            while not done():
                self._asked.clear()
                await self._asked.wait()

    async def close(self) -> None:
        if self._runner is not None:
            await self.die()

    @web.middleware
    async def _noted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        finally:
            self._asked.set()

    async def _register(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked_to_register += 1
        if not self.started:
            return web.json_response({"status": "wait for trainer to start"})
        before = sum(env["desired_name"] == body["desired_name"] for env in self.envs)
        self.envs.append(body)
        name = f"{body['desired_name']}_{before}"
        return web.json_response({"status": "success", "env_id": len(self.envs) - 1, "wandb_name": name})

    async def _disconnect(self, request: web.Request) -> web.Response:
        self.left.append((await request.json())["env_id"])
        return web.json_response({"status": "success"})

    async def _info(self, request: web.Request) -> web.Response:
        return web.json_response({"batch_size": 8, "max_token_len": self.longest})

    async def _status(self, request: web.Request) -> web.Response:
        self.looks, self.looked_at = self.looks + 1, len(self.groups)
        return web.json_response({"current_step": self.step, "queue_size": self.queued})

    async def _scored(self, request: web.Request) -> web.Response:
        body = await request.content.read()
        self.heard.append((request.path, dict(request.headers), body))
        if self.sick:
            answer = self.sick.popleft()
            if answer is not None:
                return answer
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        told = msgspec.json.decode(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
        groups = told if isinstance(told, list) else [told]
        self.groups += groups
        self.queued += len(groups)
        return web.json_response({"status": "received"})
