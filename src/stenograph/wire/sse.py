"""Server-sent events: frames around payloads that hold no line breaks, as msgspec's JSON never does."""

from __future__ import annotations

DONE = b"data: [DONE]\n\n"
"""How OpenAI ends a stream. A stream that ends without it was cut."""
KEEP_ALIVE = b": keep-alive\n\n"
"""A comment: every client skips it, every proxy sees that the connection lives."""


def data(payload: bytes) -> bytes:
    return b"data: " + payload + b"\n\n"


def named(event: str, payload: bytes) -> bytes:
    """With a name in front, as Anthropic and OpenAI Responses do."""
    return b"event: " + event.encode() + b"\ndata: " + payload + b"\n\n"
