"""`stenograph serve`: the gateway on a port, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
import uvloop

from stenograph.config import Settings, from_file, settings
from stenograph.errors import ConfigError
from stenograph.gateway import Gateway
from stenograph.integrations.doors import doors
from stenograph.server.listening import DRAIN_SECONDS, bound, configured

TELLING_SECONDS = 2
"""The last of them, for telling who waits for a call that did not end (engines may be paused): uvicorn would cut it off
with an error of its own."""


def run(options: dict[str, Any]) -> int:
    uvloop.run(_serve(_settings(options)))
    return 0


def _settings(options: dict[str, Any]) -> Settings:
    config = options.pop("config", None)
    values = from_file(Path(config)) if config else {}
    flags = {key.replace("_", "-"): value for key, value in options.items()}
    if "chat-template-kwargs" in flags:
        flags["chat-template-kwargs"] = _object(flags["chat-template-kwargs"])
    merged = settings({**values, **flags})
    if not merged.engine:
        raise ConfigError("serve needs an engine: --engine vllm=URL, or --engine local=smollm2 to try it out")
    if merged.admin_key is None and not _only_here(merged.host):
        raise ConfigError(
            f"--host {merged.host} can be reached from other machines, and without --admin-key whoever reaches it may "
            "read and end every session: give a key, or listen on 127.0.0.1"
        )
    return merged


def _only_here(host: str) -> bool:
    """A name other than `localhost` may be anywhere."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _object(text: str) -> Any:
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--chat-template-kwargs: not JSON: {error}") from error
    return value


async def _serve(chosen: Settings) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    given = {name: getattr(chosen, name) for name in chosen.__struct_fields__}
    with bound(chosen.host, chosen.port) as listening:
        async with Gateway(**given) as gateway:
            host, port = listening.getsockname()[:2]
            server = _Server(gateway, f"http://{f'[{host}]' if ':' in host else host}:{port}")
            await server.serve(sockets=[listening])


class _Server(uvicorn.Server):
    """Says where it is once it accepts requests."""

    def __init__(self, gateway: Gateway, url: str) -> None:
        super().__init__(configured(doors(gateway)))
        self._gateway = gateway
        self._url = url

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn raises a caught signal again at the end; for us a drained SIGTERM is a success."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(f"stenograph ready {self._url}", flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        giving_up = asyncio.get_running_loop().call_later(
            DRAIN_SECONDS - TELLING_SECONDS, self._gateway._at_desk().registry.give_up
        )
        try:
            await super().shutdown(sockets)
        finally:
            giving_up.cancel()
