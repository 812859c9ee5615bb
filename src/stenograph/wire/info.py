"""What the gateway says of itself, in the shapes that clients of vLLM know."""

from __future__ import annotations

from typing import Literal

from stenograph.core import Value


class EngineView(Value, kw_only=True):
    """One engine, as it is now."""

    name: str
    kind: str
    model: str
    up: bool
    paused: bool
    in_flight: int
    """Choices that it samples."""
    waiting: int
    """Calls that wait for it."""
    taken: int
    """Calls that it was given since the gateway began."""


class Engines(Value, kw_only=True):
    engines: tuple[EngineView, ...]


class Health(Value, kw_only=True):
    status: Literal["ok"]
    model: str
    engines: tuple[EngineView, ...]


class Model(Value, kw_only=True):
    id: str
    max_model_len: int
    object: Literal["model"] = "model"
    owned_by: str = "stenograph"
    created: int = 0


class Models(Value, kw_only=True):
    data: tuple[Model, ...]
    object: Literal["list"] = "list"
