"""Atropos' HTTP proxy, over sessions of ours: each uuid is a session, and its calls are the gateway's own.

serve    stenograph serve --engine vllm=http://127.0.0.1:8000      # the proxy is at http://HOST:PORT/atropos
build    atropos_proxy(gateway)                                    # the same, to mount anywhere
replace  create_app(server_manager, tokenizer, model_name)         # atroposlib's own, over its own servers
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from stenograph.gateway import Gateway
from stenograph.integrations.atropos import proxy_calls
from stenograph.integrations.atropos.homes import GatewayHome, Home, ServersHome
from stenograph.integrations.atropos.proxy_chat import ChatCall
from stenograph.integrations.atropos.proxy_desk import ProxyDesk
from stenograph.server.app import no_route, told
from stenograph.wire.errors import ErrorAnswer

Handler = Callable[[ProxyDesk, Request], Awaitable[Response]]

CHAT = "/{session}/v1/chat/completions"
CALLS: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/health", proxy_calls.health),
    ("GET", "/v1/models", proxy_calls.models),
    ("GET", "/servers", proxy_calls.servers),
    ("POST", "/setup", proxy_calls.setup),
    ("POST", "/sessions/create", proxy_calls.create),
    ("GET", "/sessions", proxy_calls.listed),
    ("POST", CHAT + "/render", proxy_calls.render),
    ("GET", "/{session}/nodes", proxy_calls.current_nodes),
    ("DELETE", "/{session}", proxy_calls.delete),
)


def atropos_proxy(gateway: Gateway) -> ASGIApp:
    return _built(GatewayHome(gateway))


def create_app(server_manager: Any, tokenizer: Any, model_name: str = "unknown") -> ASGIApp:
    """`server_manager`: atroposlib's, or anything with `servers`. It belongs on one event loop, as a server runs it."""
    return _built(ServersHome(server_manager.servers, tokenizer, model_name))


def _built(home: Home) -> ASGIApp:
    desk = ProxyDesk(home)
    routes = [Route(path, _endpoint(desk, handler), methods=[method]) for method, path, handler in CALLS]
    chats = Route(CHAT, ChatCall(desk), methods=["POST"])
    return Starlette(routes=[*routes, chats], exception_handlers={404: no_route, 405: no_route})


def _endpoint(desk: ProxyDesk, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def answering(request: Request) -> Response:
        return await handler(desk, request)

    return told(answering, ErrorAnswer)
