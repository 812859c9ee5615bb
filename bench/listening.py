"""An ASGI application on a free port of loopback, on the fastest server of ENGINES.md, saying where it is."""

from __future__ import annotations

import socket

import uvicorn
from starlette.types import ASGIApp, Receive

HOST = "127.0.0.1"


def listen(application: ASGIApp) -> None:
    """Until SIGTERM. Connections wait in the listener's queue from the line on that says so."""
    listener = socket.create_server((HOST, 0), backlog=1024)
    config = uvicorn.Config(
        application,
        log_level="critical",
        access_log=False,
        http="httptools",
        loop="uvloop",
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    print(f"ready http://{HOST}:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


async def body_of(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    more = True
    while more:
        message = await receive()
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(pieces)
