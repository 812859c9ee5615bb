"""Comparing text with a literal of a template's, white space aside: models and templates differ in it freely."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

ANYTHING = "\ufdd7"
"""In a literal: any text up to what the literal has next (the id of a call)."""
KEY = "\ufdd8"
"""In a literal: the key of the argument that it belongs to (`</KEY>`)."""
_LONGEST = 256


class Short(enum.Enum):
    """The text ends before the literal does, and fits as far as it goes."""

    SHORT = enum.auto()


SHORT = Short.SHORT


def meet(literal: str, text: str, at: int) -> int | Short | None:
    """Where `text` goes on behind the literal; None: it is not there."""
    for place, atom in enumerate(literal):
        if atom.isspace():
            at = skip_space(text, at)
        elif at == len(text):
            return SHORT
        elif atom == ANYTHING:
            at = text.find(literal[place + 1], at, at + _LONGEST)
            if at < 0:
                return SHORT
        elif text[at] == atom:
            at += 1
        else:
            return None
    return at


def skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def find(literals: Iterable[str], text: str, start: int = 0) -> tuple[int, str, int | Short] | None:
    """The first place where one of `literals` begins: place, literal, and its end (or that it may still come)."""
    best: tuple[int, str, int | Short] | None = None
    for literal in literals:
        core = literal.lstrip()
        at = text.find(core[0], start) if core else -1
        while at >= 0 and (best is None or at < best[0]):
            end = meet(core, text, at)
            if end is not None:
                best = (at, literal, end)
                break
            at = text.find(core[0], at + 1)
    return best


def begun(word: str, text: str) -> int:
    """How much of the end of `text` may be the beginning of `word` (exactly, as stop strings are compared)."""
    longest = min(len(text), len(word) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(word[:size])), 0)


def common_start(texts: Sequence[str]) -> str:
    """The longest beginning that all of them share."""
    first, last = min(texts), max(texts)
    same = next(
        (place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first)
    )
    return first[:same]
