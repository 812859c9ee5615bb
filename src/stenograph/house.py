"""What every call needs and no call owns."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stenograph.core import EngineInfo
from stenograph.engine.pool import Pool
from stenograph.origin import Weights
from stenograph.render.renderer import Renderer
from stenograph.store.store import Store


class House(msgspec.Struct):
    engines: Pool
    info: EngineInfo
    """What holds of every engine."""
    renderer: Renderer
    store: Store
    now: Callable[[], float]
    """Unix seconds."""
    new_id: Callable[[], str]
    """A fresh id of nine letters and digits, which is also what the strictest template wants of a call's id."""
    history: str
    reasoning: str
    weights: Weights = msgspec.field(default_factory=Weights)

    @property
    def vocab_size(self) -> int:
        """Of the model, where an engine says so. It may have rows that no token of its tokenizer needs, which can be
        sampled all the same; and it may lack some that were added to the tokenizer alone, which would break it."""
        return self.info.vocab_size or self.renderer.tokenizer.vocab_size
