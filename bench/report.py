"""What a benchmark hands back, and how it is printed: Markdown, which reads in a terminal as well."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Protocol, Self

from stenograph.core import Value


class Scale(Value):
    """How much of it is done."""

    repeats: int
    """Of each measurement. They are interleaved: one of each contender, then the next round."""
    seconds: float
    """That a measurement takes at least: what is fast is then done more often."""
    quick: bool
    """A check that everything works. Its numbers mean nothing."""


FULL = Scale(repeats=5, seconds=0.6, quick=False)
QUICK = Scale(repeats=2, seconds=0.0, quick=True)


class Table(Value):
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Each as long as `head`."""
    note: str = ""
    """How to read it, in a sentence or two."""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.head) for row in self.rows):
            raise ValueError(f"{self.title}: a row is not as long as the head")

    def markdown(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]
        lines = [_line(row, widths) for row in (self.head, tuple("-" * width for width in widths), *self.rows)]
        return "\n".join([f"### {self.title}", *([self.note] if self.note else []), "", *lines, ""])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"


class Run(Protocol):
    """A benchmark: one module's `run`."""

    def __call__(self, scale: Scale) -> Sequence[Table]: ...


class Spread(Value):
    """One figure over the repeats."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        return cls(statistics.median(values), min(values), max(values))

    @classmethod
    def of_ratios(cls, ours: Sequence[float], theirs: Sequence[float]) -> Self:
        """Repeat by repeat: both sides of a ratio were measured within the same seconds."""
        return cls.of([one / other for one, other in zip(ours, theirs, strict=True)])

    def __str__(self) -> str:
        return f"{_digits(self.median)} ({_digits(self.least)} to {_digits(self.most)})"


def _digits(value: float) -> str:
    """Three significant ones, and never an exponent."""
    size = abs(value)
    return f"{value:,.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3}f}"
