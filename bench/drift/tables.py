"""What came out, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add

from bench.drift.cells import WAYS, Cell
from bench.drift.habits import HABITS
from bench.drift.measure import Tally
from bench.report import Table
from stenograph.core import JSON

FIGURES: dict[str, Callable[[Tally], str]] = {
    "sampled tokens trained as sampled": lambda tally: _share(tally.right, tally.sampled),
    "trained turns behind another prompt than the engine's": lambda tally: _share(tally.drifted, tally.turns),
    "prompts that read otherwise than the template": lambda tally: _share(tally.misread, tally.prompts),
    "samples a rollout": lambda tally: _mean(tally.samples, tally.rollouts - tally.ended_early),
    "calls failed": lambda tally: _share(tally.failed, tally.calls),
}
HOW = """\
A token counts as trained where some sample has it with the id and the logprob that the engine gave; a rollout that ended in a
failed call is not trained. Samples are counted in the rollouts that did not. What is mirrored, and how, stands at the top of
each file of `bench/drift`."""
BY_HABIT = "The same five figures, in the same order: trained / behind another prompt / read otherwise / samples / failed."


def markdown(cells: Sequence[Cell], seeds: int) -> str:
    return "\n".join([*(table.markdown() for table in (total(cells, seeds), by_habit(cells))), refusals(cells)])


def total(cells: Sequence[Cell], seeds: int) -> Table:
    names = {cell.tokenizer for cell in cells}
    rendered = sum(cell.refused is None for cell in cells)
    title = f"{_counted(len(names), 'tokenizer')}, {_counted(len(HABITS), 'habit')}, {seeds} rollouts of each"
    rows = []
    for way, label in WAYS.items():
        tally = _sum(cell.ways[way] for cell in cells if cell.refused is None)
        rows.append((label, *(figure(tally) for figure in FIGURES.values())))
    return Table(title, ("way of recording", *FIGURES), tuple(rows), f"{rendered} cells.\n{HOW}")


def by_habit(cells: Sequence[Cell]) -> Table:
    rows = []
    for habit, (label, _) in HABITS.items():
        rendered = [cell for cell in cells if cell.habit == habit and cell.refused is None]
        tallies = [_sum(cell.ways[way] for cell in rendered) for way in WAYS]
        rows.append((label, *(" / ".join(figure(tally) for figure in FIGURES.values()) for tally in tallies)))
    return Table("By habit", ("the agent or the model …", *WAYS.values()), tuple(rows), BY_HABIT)


def refusals(cells: Sequence[Cell]) -> str:
    lines = [f"- {cell.tokenizer}, {HABITS[cell.habit][0]}: {cell.refused}" for cell in cells if cell.refused]
    return "\n".join(["### Refused, in the templates' own words", "", *(lines or ["Nothing."]), ""])


def as_json(cells: Sequence[Cell], seeds: int) -> str:
    """One line a cell, so that a change shows where it is."""
    head = json.dumps({"seeds": seeds, "ways": WAYS, "columns": Tally.__struct_fields__})
    lines = ",\n".join(json.dumps(_plain(cell), ensure_ascii=False) for cell in cells)
    return f'{head[:-1]}, "cells": [\n{lines}\n]}}\n'


def _plain(cell: Cell) -> dict[str, JSON]:
    named = {"tokenizer": cell.tokenizer, "habit": cell.habit}
    if cell.refused is not None:
        return named | {"refused": cell.refused}
    tallies = {way: [getattr(tally, name) for name in tally.__struct_fields__] for way, tally in cell.ways.items()}
    return named | {"ways": tallies, "forks": dict(sorted(cell.forks.items()))}


def _sum(tallies: Iterable[Tally]) -> Tally:
    return reduce(add, tallies, Tally())


def _share(part: int, whole: int) -> str:
    """Never rounded to perfection."""
    if not whole:
        return "–"
    if part in (0, whole):
        return f"{100 * part // whole}%"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f}%"


def _mean(part: int, whole: int) -> str:
    return f"{part / whole:.1f}" if whole else "–"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
