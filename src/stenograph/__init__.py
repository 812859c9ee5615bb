"""Agents speak text, engines sample tokens: between them, an exact record of what was sampled.

Importing the package loads nothing heavy: a name's module is loaded when the name is first asked for. So the command
line answers at once, and a trainer that only reads samples never loads a server.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from stenograph.version import __version__

if TYPE_CHECKING:
    from stenograph.core import Fork, ForkReason, Note, NoteKind, Sample, Span, State
    from stenograph.errors import (
        CallerError,
        ConfigError,
        Conflict,
        ContextLengthExceeded,
        EngineError,
        EngineTimeout,
        EngineUnavailable,
        EvidenceError,
        InternalError,
        MethodNotAllowed,
        NotFound,
        Overloaded,
        StenographError,
        StoreError,
        TemplateRefused,
        TooLarge,
        Unauthorized,
    )
    from stenograph.gateway import Gateway, Group

__all__ = [
    "CallerError",
    "ConfigError",
    "Conflict",
    "ContextLengthExceeded",
    "EngineError",
    "EngineTimeout",
    "EngineUnavailable",
    "EvidenceError",
    "Fork",
    "ForkReason",
    "Gateway",
    "Group",
    "InternalError",
    "MethodNotAllowed",
    "NotFound",
    "Note",
    "NoteKind",
    "Overloaded",
    "Sample",
    "Span",
    "State",
    "StenographError",
    "StoreError",
    "TemplateRefused",
    "TooLarge",
    "Unauthorized",
    "__version__",
]

_GATEWAY = frozenset({"Gateway", "Group"})
_CORE = frozenset({"Fork", "ForkReason", "Note", "NoteKind", "Sample", "Span", "State"})


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "core" if name in _CORE else "gateway" if name in _GATEWAY else "errors"
    value: object = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
