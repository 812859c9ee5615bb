"""What every call needs and no call owns."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stenograph.core import EngineInfo, Value
from stenograph.engine.engine import Engine
from stenograph.render.renderer import Renderer
from stenograph.store.store import Store


class Weights(Value):
    """What a trainer last said of the weights that the engines hold."""

    version: str | None = None
    step: int | None = None


class House(msgspec.Struct):
    engine: Engine
    info: EngineInfo
    renderer: Renderer
    store: Store
    now: Callable[[], float]
    """Unix seconds."""
    new_id: Callable[[], str]
    """A fresh id of nine letters and digits, which is also what the strictest template wants of a call's id."""
    history: str
    reasoning: str
    weights: Weights = Weights()
