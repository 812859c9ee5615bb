"""A port, and how uvicorn is to serve the application on it."""

from __future__ import annotations

import socket

import uvicorn
from starlette.types import ASGIApp

from stenograph.errors import ConfigError

LOOPBACK = "127.0.0.1"
DRAIN_SECONDS = 30
"""How long calls under way may take to end after SIGTERM."""


def bound(host: str, port: int) -> socket.socket:
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


def configured(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        http="httptools",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
