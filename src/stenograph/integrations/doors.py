"""What `serve` serves: the gateway's own application, and other systems' interfaces, each under a name of its own.

Always there, for a name that no route of ours has costs nothing; loaded when first asked for, because what they import
takes a second, and not every install has it.
"""

from __future__ import annotations

import asyncio

from starlette.routing import Mount, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from stenograph.errors import NotFound
from stenograph.gateway import Gateway
from stenograph.server.session_calls import refusal

ATROPOS = "/atropos"


def doors(gateway: Gateway) -> ASGIApp:
    beside = Router([Mount(ATROPOS, app=AtroposDoor(gateway))])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        others = scope["type"] == "http" and scope["path"].startswith(f"{ATROPOS}/")
        await (beside if others else gateway.app)(scope, receive, send)

    return app


class AtroposDoor:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._proxy: asyncio.Future[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._proxy is None:
            self._proxy = asyncio.ensure_future(asyncio.to_thread(_proxy, self._gateway))
        try:
            proxy = await asyncio.shield(self._proxy)
        except ImportError as missing:
            detail = f"Atropos' proxy needs openai's package ({missing}): pip install 'stenograph[openai]'"
            await refusal(NotFound(detail))(scope, receive, send)
        else:
            await proxy(scope, receive, send)


def _proxy(gateway: Gateway) -> ASGIApp:
    from stenograph.integrations.atropos.proxy import atropos_proxy

    return atropos_proxy(gateway)
