"""Sampled text that nobody has read yet: the end of all the text there is."""

from __future__ import annotations

from stenograph.render.coded import Coding
from stenograph.render.marks import Short, meet, skip_space


class Unread:
    def __init__(self, coding: Coding) -> None:
        self.text = ""
        """Coded."""
        self._coding = coding
        self._all: list[str] = []
        self._length = 0
        self._stopped = 0
        """How much of the text the stop string took from the end."""

    def append(self, coded: str) -> None:
        self._all.append(coded)
        self._length += len(coded)
        self.text += coded

    def take(self, count: int) -> str:
        """The first characters: they are read now."""
        piece, self.text = self.text[:count], self.text[count:]
        return piece

    def stop_at(self, place: int) -> None:
        """Here a stop string began: it and what is behind it are never read."""
        self._stopped = len(self.text) - place
        self.text = self.text[:place]

    def meet(self, literal: str, start: int = 0) -> int | Short | None:
        """White space before the literal aside."""
        return meet(literal.strip(), self.text, skip_space(self.text, start))

    @property
    def place(self) -> int:
        """How much of all the text stands before it."""
        return self._length - len(self.text) - self._stopped

    @property
    def whole(self) -> str:
        """All the text there is, read or not: spelled."""
        return self._coding.spell("".join(self._all))

    def behind(self, place: int) -> str:
        return self._coding.spell("".join(self._all)[place:])

    def silent_end(self, piece: str) -> int:
        """How many characters at the end of a piece say nothing: white space and special tokens."""
        place = len(piece)
        while place and (piece[place - 1].isspace() or piece[place - 1] in self._coding.special):
            place -= 1
        return len(piece) - place

    def special_end(self) -> int:
        """The same of what was read, and of special tokens alone."""
        read = "".join(self._all)[: self.place]
        return len(read) - len(read.rstrip("".join(self._coding.special)))
