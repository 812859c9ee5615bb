"""Watches a reply for what ends it, for engines that cannot be asked to.

The id or the string that ends a reply belongs to it, as on vLLM: what was sampled is kept to its last token, and the
engine is cut off behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

from stenograph.core import Finish, Sampling
from stenograph.render.tokenizer import Tokenizer


class StopWatch:
    def __init__(self, sampling: Sampling, tokenizer: Tokenizer, eos: int | None) -> None:
        """`eos`: the model's own end. Reached, it is no `stop_reason`, also where it was asked for by its id."""
        self._ids = frozenset(sampling.stop_token_ids)
        self._strings = {string: string.encode() for string in sampling.stop}
        self._window = max(map(len, self._strings.values()), default=1) - 1
        self._tokenizer = tokenizer
        self._eos = eos
        self._tail = b""
        """The bytes before the next token that may begin a stop string. Bytes: tokens may hold half a character."""

    def end_of(self, ids: Sequence[int]) -> Finish | None:
        """What the next tokens of the reply end it with, if they do."""
        return next(filter(None, map(self._feed, ids)), None)

    def _feed(self, id: int) -> Finish | None:
        if id in self._ids:
            return Finish("stop", None if id == self._eos else id)
        if not self._strings:
            return None
        text = self._tail + self._tokenizer.bytes_of(id)
        self._tail = text[max(len(text) - self._window, 0) :]
        found = [(at, string) for string, coded in self._strings.items() if (at := text.find(coded)) >= 0]
        return Finish("stop", min(found)[1]) if found else None
