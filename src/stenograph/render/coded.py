"""Text in which a control token is one character that no text has, so that reading needs no second channel.

`<think>` sampled as the token of that name and `<think>` spelled in ordinary tokens are different things. In coded text
the first is a single private character, the second seven ordinary ones, and a marker is found by plain comparison.
"""

from __future__ import annotations

import functools

from stenograph.render.literal import Finder
from stenograph.render.tokenizer import Tokenizer

FIRST_CODED = chr(0x100000)
"""Plane 16, private use: 65,534 characters. The largest vocabulary at hand adds 6,415 tokens."""


class Coding:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        words = sorted((id, word) for word, id in tokenizer.markers.items())
        self._by_id = {id: chr(ord(FIRST_CODED) + place) for place, (id, _) in enumerate(words)}
        self._by_word = {word: self._by_id[id] for id, word in words}
        self._words = {char: word for word, char in self._by_word.items()}
        self._visible = {char: "" if id in tokenizer.special else self._words[char] for id, char in self._by_id.items()}
        self._finder = Finder([word for _, word in words])

    def char(self, id: int) -> str | None:
        """Of a control token; None for an ordinary one."""
        return self._by_id.get(id)

    def code(self, text: str) -> str:
        """A template's own writing: every marker in it counts."""
        return self._finder.replace(text, self._by_word.__getitem__)

    def spell(self, coded: str) -> str:
        """With every control token spelled out."""
        return self._translated(coded, self._words)

    def visible(self, coded: str) -> str:
        """As it is answered: special tokens say nothing, other added ones are text."""
        return self._translated(coded, self._visible)

    @functools.cached_property
    def special(self) -> frozenset[str]:
        return frozenset(char for id, char in self._by_id.items() if id in self._tokenizer.special)

    def _translated(self, coded: str, table: dict[str, str]) -> str:
        if coded.isascii() or max(coded, default="") < FIRST_CODED:
            return coded
        return "".join(table.get(char, char) for char in coded)


def ends_tag(char: str) -> bool:
    """Of coded text: a bracket, or a control token."""
    return char == ">" or char >= FIRST_CODED


def last_mark(text: str) -> str:
    """With which coded text ends: a control token, or a tag in letters; '' where that is neither."""
    text = text.rstrip()
    if text[-1:] >= FIRST_CODED:
        return text[-1]
    return text[text.rfind("<") :] if text.endswith(">") and "<" in text else ""


def first_mark(text: str) -> str:
    """With which it begins."""
    text = text.lstrip()
    if text[:1] >= FIRST_CODED:
        return text[0]
    return text[: text.find(">") + 1] if text.startswith("<") else ""
