"""Ids for a text, though not the ones that its tokenizer gives: models do sample such, and recorders trip over them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from stenograph.render.tokenizer import Tokenizer


class Spelling:
    def __init__(self, tokenizer: Tokenizer, cut: float) -> None:
        """`cut`: how likely a token is spelt with two smaller ones."""
        self._tokenizer = tokenizer
        self._cut = cut
        self._known: dict[int, list[tuple[int, int]]] = {}

    def spell(self, text: str, dice: random.Random) -> Iterator[int]:
        """Decodes to what the tokenizer's own ids decode to; as soon as one token is cut, the ids are others."""
        for id in self._tokenizer.encode(text):
            pairs = self._pairs(id) if dice.random() < self._cut else []
            yield from dice.choice(pairs) if pairs else (id,)

    def _pairs(self, id: int) -> list[tuple[int, int]]:
        """Every two tokens that stand for the bytes of this one. None for a marker: its text is no marker."""
        if id not in self._known:
            self._known[id] = [] if id in self._tokenizer.control else list(self._find(id))
        return self._known[id]

    def _find(self, id: int) -> Iterator[tuple[int, int]]:
        token, bytes_of = self._tokenizer.text_of(id), self._tokenizer.bytes_of
        for at in range(1, len(token)):
            left, right = self._tokenizer.id_of(token[:at]), self._tokenizer.id_of(token[at:])
            if left is None or right is None or not self._tokenizer.control.isdisjoint((left, right)):
                continue
            if bytes_of(left) + bytes_of(right) == bytes_of(id):
                yield left, right
