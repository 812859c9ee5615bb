"""What the gateway says of itself, in the shapes that clients of vLLM know."""

from __future__ import annotations

from typing import Literal

from stenograph.core import Value


class Health(Value, kw_only=True):
    status: Literal["ok"]
    engine: str
    kind: str
    model: str


class Model(Value, kw_only=True):
    id: str
    max_model_len: int
    object: Literal["model"] = "model"
    owned_by: str = "stenograph"
    created: int = 0


class Models(Value, kw_only=True):
    data: tuple[Model, ...]
    object: Literal["list"] = "list"
