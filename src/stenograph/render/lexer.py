"""Sampled ids to text and marks, as they come.

A marker that is a control token of the vocabulary is recognised by its id alone: the same letters in ordinary tokens
are text. Any other marker is recognised by its letters, and text that may still become one is held back, as is half a
character, and text that may be the caller's stop string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stenograph.core import Value
from stenograph.render.tokenizer import Tokenizer


class Lexeme(Value):
    text: str
    """Marker or text; '' for a control token that says nothing."""
    mark: bool
    end: int
    """Where in the raw text it ends."""


class Lexer:
    def __init__(self, tokenizer: Tokenizer, markers: Iterable[str], stop: tuple[str, ...]) -> None:
        self._tokenizer = tokenizer
        self._stream = tokenizer.stream()
        self._by_id = {tokenizer.added[word]: word for word in markers if word in tokenizer.added}
        self._by_text = tuple(word for word in markers if word not in tokenizer.added)
        self._stop = stop
        self._held = ""
        self._at_stop = False
        """The held text begins with a whole stop string: the last one, if the engine ends here."""
        self._pieces: list[str] = []
        self._length = 0

    @property
    def raw(self) -> str:
        """All text so far, control tokens as they are spelled."""
        return "".join(self._pieces)

    def _note(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)

    def feed(self, ids: Iterable[int]) -> Iterator[Lexeme]:
        for id in ids:
            text = self._stream.feed(id)
            if id in self._by_id or id in self._tokenizer.special:
                yield from self._control(id, text)
            elif text:
                self._note(text)
                self._held += text
                yield from self._scan()

    def feed_text(self, text: str) -> Iterator[Lexeme]:
        """Reads written text instead of ids: every marker is told by its letters."""
        self._by_text, self._by_id = (*self._by_text, *self._by_id.values()), {}
        self._note(text)
        self._held += text
        yield from self._scan()
        yield from self._release(len(self._held))

    def finish(self, ids: Iterable[int], *, stopped_by: str | None) -> Iterator[Lexeme]:
        """`ids`: all that were fed; a character cut in half at their end comes out now, as U+FFFD."""
        whole = self._tokenizer.decode(ids)
        if whole.startswith(self.raw):
            unfinished = whole[self._length :]
            self._note(unfinished)
            self._held += unfinished
        if stopped_by is not None and stopped_by in self._held:
            cut = len(self._held) - self._held.index(stopped_by)
            self._held = self._held[:-cut]
            yield from self._release(len(self._held), behind=cut)
        else:
            yield from self._release(len(self._held))

    def _control(self, id: int, text: str) -> Iterator[Lexeme]:
        """A control token ends whatever was being held: no marker reaches across it."""
        spelled = self._tokenizer.text_of(id)
        unfinished = text.removesuffix(spelled) if text.endswith(spelled) else ""
        self._note(unfinished)
        self._held += unfinished
        yield from self._release(len(self._held))
        self._note(spelled)
        yield Lexeme(self._by_id.get(id, ""), id in self._by_id, self._length)

    def _scan(self) -> Iterator[Lexeme]:
        if self._at_stop:
            self._at_stop = False
            yield from self._release(1)
        while found := self._first_word():
            place, word = found
            yield from self._release(place)
            if word in self._stop:
                self._at_stop = True
                return
            self._held = self._held[len(word) :]
            yield Lexeme(word, True, self._length - len(self._held))
        words = (*self._by_text, *self._stop)
        doubtful = max((_overlap(self._held, word) for word in words), default=0)
        yield from self._release(len(self._held) - doubtful)

    def _first_word(self) -> tuple[int, str] | None:
        found = [(place, word) for word in (*self._by_text, *self._stop) if (place := self._held.find(word)) >= 0]
        return min(found, default=None)

    def _release(self, count: int, *, behind: int = 0) -> Iterator[Lexeme]:
        """`behind`: how much of the raw text follows the held text without being part of it."""
        if count:
            ready, self._held = self._held[:count], self._held[count:]
            yield Lexeme(ready, False, self._length - len(self._held) - behind)


def _overlap(text: str, word: str) -> int:
    """The longest end of `text` with which `word` begins, but is not complete."""
    longest = min(len(text), len(word) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(word[:size])), 0)
