"""Whose engines sample for the proxy's sessions: a gateway's, or those of Atropos' own server objects.

Both are named where the process is started. No request makes it call anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from stenograph.core import Value
from stenograph.engine.http import root_of, without_password
from stenograph.errors import ConfigError, NotFound
from stenograph.gateway import Gateway
from stenograph.integrations.atropos.backend import Backend
from stenograph.server.engine_calls import views


class Place(Value):
    gateway: Gateway
    base_url: str | None


class Server(Value):
    base_url: str | None
    """None: it has no address, or is no server."""
    healthy: bool
    model_name: str
    server_type: str


class Home(Protocol):
    keeps: bool
    """Sessions that are deleted stay on record."""

    @property
    def model(self) -> str: ...

    def check_admin(self, headers: Mapping[str, str]) -> None: ...

    def servers(self) -> Sequence[Server]: ...

    async def place(self, base_url: str | None, tool_parser: str) -> Place: ...


class GatewayHome:
    """A gateway's sessions. Its pool says which of its engines samples, and stays with it."""

    keeps = True

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def model(self) -> str:
        return self._gateway.model

    def check_admin(self, headers: Mapping[str, str]) -> None:
        self._gateway._at_desk().check_admin(headers)

    def servers(self) -> list[Server]:
        told = zip(self._where(), views(self._gateway._at_desk()), strict=True)
        return [Server(where, view.up, self.model, view.kind) for where, view in told]

    def _where(self) -> list[str | None]:
        """Of each engine, in the pool's order. One that is an object has no address."""
        specs = self._gateway.settings.engines()
        return [address(spec.where) for spec in specs] or [None]

    async def place(self, base_url: str | None, tool_parser: str) -> Place:
        servers = self.servers()
        found = one_of(servers, base_url).base_url if base_url is not None else None
        return Place(self._gateway, servers[0].base_url if len(servers) == 1 else found)


class ServersHome:
    """A `ServerManager`'s servers, each behind a gateway that lives as long as the event loop."""

    keeps = False

    def __init__(self, servers: Sequence[Any], tokenizer: Any, model: str) -> None:
        self._servers = servers
        self._tokenizer = tokenizer
        self._model = model

    @property
    def model(self) -> str:
        return self._model

    def check_admin(self, headers: Mapping[str, str]) -> None:
        """Atropos' proxy has no keys."""

    def servers(self) -> list[Server]:
        return [self._told(server) for server in self._servers]

    async def place(self, base_url: str | None, tool_parser: str) -> Place:
        told = self.servers()
        if base_url is not None:
            chosen = told.index(one_of(told, base_url))
        else:
            well = [place for place, server in enumerate(told) if server.healthy] or range(len(told))
            chosen = max(well, key=lambda place: getattr(getattr(self._servers[place], "sem", None), "_value", 0))
        running = await Backend(self._servers[chosen], self._tokenizer, tool_parser).running()
        return Place(running.gateway, told[chosen].base_url)

    def _told(self, server: Any) -> Server:
        config = getattr(server, "config", None)
        return Server(
            getattr(config, "base_url", None),
            bool(getattr(server, "server_healthy", True)),
            str(getattr(config, "model_name", self._model)),
            str(getattr(config, "server_type", "unknown")),
        )


def address(where: str) -> str | None:
    try:
        return without_password(root_of(where))
    except ConfigError:
        return None


def one_of(servers: Iterable[Server], base_url: str) -> Server:
    """By where it leads, however it is written: with or without `/v1`."""
    wanted = address(base_url)
    known = [server for server in servers if server.base_url is not None]
    found = [server for server in known if wanted is not None and address(server.base_url or "") == wanted]
    if not found:
        names = ", ".join(server.base_url or "" for server in known) or "none with an address"
        where = without_password(base_url)
        detail = f"there is no engine at {where}; there is {names}: engines are named where this is started"
        raise NotFound(detail, param="base_url")
    return found[0]
