"""The tables of a Markdown page: what a reference says in a form that can be held to the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from stenograph.core import Value

CODE = re.compile(r"`([^`]+)`")
CELLS = re.compile(r"(?<!\\)\|")
"""A bar behind a backslash belongs to its cell."""


class Table(Value):
    heading: str
    """The heading that it stands under, as written."""
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> list[str]:
        """What stands in code in front of each row."""
        return [found[1] for row in self.rows if (found := CODE.search(row[0]))]


def tables(page: Path) -> list[Table]:
    return list(_tables(page.read_text().splitlines()))


def _tables(lines: list[str]) -> Iterator[Table]:
    heading, rows = "", list[tuple[str, ...]]()
    for line in [*lines, ""]:
        if line.startswith("|"):
            rows.append(tuple(cell.strip() for cell in CELLS.split(line)[1:-1]))
            continue
        if rows:
            yield Table(heading, rows[0], tuple(rows[2:]))
            rows = []
        if line.startswith("#"):
            heading = line.lstrip("# ")
