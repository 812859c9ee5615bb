"""Text is text: a marker such as `<|im_end|>` inside a message must not become a control token (law 9).

Before a message meets the template, every marker in it is *masked* by a pair of Unicode noncharacters around a number.
The rendered text then holds only the template's own markers; `encode` sets those apart for the tokenizer and puts the
characters of the masked ones back as ordinary text. Markers are rare: a text without masks takes the plain way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from stenograph.core import JSON
from stenograph.render.tokenizer import Tokenizer

MASK_OPEN, MASK_CLOSE = "\ufdd0", "\ufdd1"
_MASK = re.compile(f"{MASK_OPEN}([0-9]+){MASK_CLOSE}")
_NONCHARACTERS = [chr(code) for code in range(0xFDD0, 0xFDF0)]
"""Unicode keeps them for uses such as ours. Where a text holds one all the same, or one that is spelled out, it is
masked like a marker."""

J = TypeVar("J")


class Literals:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._neutral_anchor = _neutral_anchor(tokenizer)
        markers = list(tokenizer.markers)
        self._words = [*_NONCHARACTERS, *(f"\\u{ord(char):x}" for char in _NONCHARACTERS), *sorted(markers)]
        self._numbers = {word: number for number, word in enumerate(self._words)}
        self._finder = Finder(self._words)
        self._template_finder = Finder(markers)

    def mask(self, text: str) -> str:
        return self._finder.replace(text, lambda word: f"{MASK_OPEN}{self._numbers[word]}{MASK_CLOSE}")

    def mask_within(self, value: J) -> J:
        """Every string inside a JSON value, keys too."""
        if not self._finder.search(msgspec.json.encode(value).decode()):
            return value
        masked: J = _map_strings(value, self.mask)
        return masked

    def unmask(self, text: str) -> str:
        return _MASK.sub(lambda match: self._words[int(match[1])], text)

    def encode(self, masked: str) -> list[int]:
        if MASK_OPEN not in masked:
            return self._tokenizer.encode(masked)
        apart = self._template_finder.replace(masked, self._tokenizer.set_apart)
        return self._tokenizer.encode_apart(self.unmask(apart))

    def encode_behind(self, last: int | None, masked: str) -> list[int]:
        """The ids of a text that continues a path ending in the id `last` (None: nothing precedes it).

        A tokenizer may treat the beginning of a text in its own way (SentencePiece puts a space before it), and a
        control token may eat white space beside it. So the text is encoded behind an anchor that is then cut off: the
        very control token that precedes it, or, behind ordinary tokens, one that changes nothing.
        """
        if last is None:
            return self.encode(masked)
        anchor = last if last in self._tokenizer.control else self._neutral_anchor
        if anchor is None:
            return self.encode(masked)
        return self.encode(self._tokenizer.text_of(anchor) + masked)[1:]


class Finder:
    """Finds the longest of many words at each place, in one pass over the text.

    A plain alternation of the 6,415 added tokens of gemma3 would be tried one by one at every `<`.
    """

    def __init__(self, words: list[str]) -> None:
        self._words = frozenset(words)
        lengths: dict[str, set[int]] = {}
        for word in words:
            lengths.setdefault(word[0], set()).add(len(word))
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}
        self._firsts = re.compile("[" + re.escape("".join(sorted(lengths))) + "]") if words else None

    def search(self, text: str) -> bool:
        return next(self._spans(text), None) is not None

    def replace(self, text: str, change: Callable[[str], str]) -> str:
        pieces: list[str] = []
        end = 0
        for start, stop in self._spans(text):
            pieces += [text[end:start], change(text[start:stop])]
            end = stop
        return "".join([*pieces, text[end:]]) if end else text

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        position = 0
        while self._firsts is not None and (found := self._firsts.search(text, position)):
            position = found.start()
            word_length = next(
                (size for size in self._lengths[text[position]] if text[position : position + size] in self._words), 0
            )
            if word_length:
                yield position, position + word_length
            position += word_length or 1


def _map_strings(value: JSON, change: Callable[[str], str]) -> JSON:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _map_strings(inner, change) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_map_strings(inner, change) for inner in value]
    return value


def _neutral_anchor(tokenizer: Tokenizer) -> int | None:
    """A control token behind which any text is encoded to just its own bytes; None where no anchor does better."""
    samples = ("x", " x", "\nx", "  x\n", ".")
    for anchor in (None, *sorted(tokenizer.special)):
        lead = [] if anchor is None else [anchor]
        prefix = "" if anchor is None else tokenizer.text_of(anchor)
        encoded = [(sample, tokenizer.encode(prefix + sample)) for sample in samples]
        if all(
            ids[: len(lead)] == lead and b"".join(map(tokenizer.bytes_of, ids[len(lead) :])) == sample.encode()
            for sample, ids in encoded
        ):
            return anchor
    return None
