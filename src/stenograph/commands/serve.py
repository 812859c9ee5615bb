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

DRAIN_SECONDS = 30
"""How long calls under way may take to end after SIGTERM."""


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
    with _bound(chosen.host, chosen.port) as listening:
        async with Gateway(**given) as gateway:
            host, port = listening.getsockname()[:2]
            server = _Server(gateway, f"http://{f'[{host}]' if ':' in host else host}:{port}")
            await server.serve(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    """Before anything is loaded: a port that is taken is said at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    # Its connections inherit this. Without it the body of an answer waits 40 ms for its head to be acknowledged.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    listening.set_inheritable(True)
    return listening


class _Server(uvicorn.Server):
    """Says where it is once it accepts requests."""

    def __init__(self, gateway: Gateway, url: str) -> None:
        config = uvicorn.Config(
            gateway.app,
            log_config=None,
            access_log=False,
            lifespan="off",
            http="httptools",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        super().__init__(config)
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
