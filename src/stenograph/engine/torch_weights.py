"""New weights for a transformers model, looked at before any of them is laid over the old ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stenograph.errors import ConfigError


def refuse_others(model: Any, weights: Mapping[str, Any]) -> None:
    """`load_state_dict` copies what fits and complains afterwards: then the model is half of one version and half of
    another, under the old one's name."""
    if fault := next(_faults(model.state_dict(), weights), None):
        raise ConfigError(f"these are not the weights of this {type(model).__name__}: {fault}")


def _faults(wanted: Mapping[str, Any], weights: Mapping[str, Any]) -> Iterator[str]:
    """A tied tensor has two names, and files of weights keep one of them."""
    brought = {wanted[name].data_ptr() for name in weights if name in wanted}
    yield from (f"it has no {name}" for name in weights if name not in wanted)
    yield from (
        f"{name} is missing" for name in wanted if name not in weights and wanted[name].data_ptr() not in brought
    )
    yield from (
        f"{name} is {tuple(weights[name].shape)} in place of {tuple(wanted[name].shape)}"
        for name in weights
        if weights[name].shape != wanted[name].shape
    )
