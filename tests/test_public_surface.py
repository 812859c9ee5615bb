"""The public surface changes only on purpose: with a line here, and one in CHANGELOG.md."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import stenograph

SURFACE = [
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


def shown_to_type_checkers() -> list[str]:
    tree = ast.parse(Path(str(stenograph.__file__)).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return [alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]


def test_the_surface_is_the_one_that_was_agreed_on() -> None:
    assert stenograph.__all__ == SURFACE == sorted(SURFACE)


def test_type_checkers_see_the_same_names() -> None:
    assert sorted([*shown_to_type_checkers(), "__version__"]) == SURFACE


@pytest.mark.parametrize("name", SURFACE)
def test_each_name_is_there(name: str) -> None:
    assert getattr(stenograph, name).__class__ is not None
    assert name in dir(stenograph)


def test_the_error_tree_is_public_as_a_whole() -> None:
    tree = [stenograph.StenographError]
    for error in tree:
        tree.extend(error.__subclasses__())
    own = {error.__name__ for error in tree if error.__module__ == "stenograph.errors"}
    assert own <= set(SURFACE)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Turn'"):
        _ = stenograph.Turn
