"""What passes between us and llama.cpp's process."""

from __future__ import annotations

import msgspec


class Settings(msgspec.Struct, frozen=True):
    model: str
    api_key: str
    """Without one, every process on this machine could use the server."""
    slots: int
    """How many replies are sampled at a time."""
    threads: int
    context: int
    """Tokens a slot holds, prompt and reply together."""


class Ready(msgspec.Struct, frozen=True):
    address: str
