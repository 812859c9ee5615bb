"""What came out, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import add

from bench.drift.cells import WAYS, Cell
from bench.drift.habits import HABITS
from bench.drift.measure import Tally
from bench.drift.model import SPELLINGS, Spelling
from bench.report import Table
from stenograph.core import JSON

FIGURES: dict[str, Callable[[Tally], str]] = {
    "sampled tokens trained as they were sampled": lambda tally: _share(tally.right, tally.sampled),
    "trained turns behind another prompt than the engine had": lambda tally: _share(tally.drifted, tally.turns),
    "prompts that read otherwise than the template writes": lambda tally: _share(tally.misread, tally.prompts),
    "samples a rollout": lambda tally: _mean(tally.samples, tally.whole),
    "calls failed": lambda tally: _share(tally.failed, tally.calls),
}
TOKENS: dict[str, Callable[[Tally], str]] = {
    "tokens a rollout": lambda tally: f"{tally.sample_tokens / tally.whole:.0f}" if tally.whole else "–"
}
TITLES: dict[Spelling, str] = {
    "odd": "Replies in tokens that the tokenizer would not choose",
    "canonical": "The same where every reply happens to be spelt as the tokenizer spells it",
}
HOW = """
A token counts as trained where a sample has it with the id and the logprob that the engine gave. A rollout with a call
that failed is not trained: in the systems that are mirrored, the agent's exception ends it. Samples and tokens are
counted in the others. What each way mirrors, and what it is given in its favour, stands at the top of its file in
`bench/drift`. By tokenizer and habit: `bench/drift/results.json`.
"""
BY_HABIT = "Five figures, ordered as above: trained / behind another prompt / read otherwise / samples / failed."


def markdown(cells: Sequence[Cell], seeds: int) -> str:
    return "\n".join([_extent(cells, seeds), *_tables(cells), _refusals(cells)])


def as_json(cells: Sequence[Cell], seeds: int) -> str:
    """One line a cell, so that a change shows where it is."""
    head = json.dumps({"seeds": seeds, "ways": WAYS, "columns": Tally.__struct_fields__})
    lines = ",\n".join(json.dumps(_plain(cell), ensure_ascii=False, separators=(",", ":")) for cell in cells)
    return f'{head[:-1]}, "cells": [\n{lines}\n]}}\n'


def _extent(cells: Sequence[Cell], seeds: int) -> str:
    tokenizers = len({cell.tokenizer for cell in cells})
    rollouts = seeds * sum(not cell.refused for cell in cells)
    return f"{tokenizers} tokenizers and chat templates, {len(HABITS)} habits, {rollouts} rollouts of each way.\n{HOW}"


def totals(cells: Sequence[Cell]) -> list[Table]:
    return [_total(TITLES[spelling], _rendered(cells, spelling)) for spelling in SPELLINGS]


def _tables(cells: Sequence[Cell]) -> Iterator[str]:
    for spelling, total in zip(SPELLINGS, totals(cells), strict=True):
        yield total.markdown()
        yield _by_habit(f"{TITLES[spelling]}, by habit", _rendered(cells, spelling)).markdown()


def _rendered(cells: Sequence[Cell], spelling: Spelling) -> list[Cell]:
    return [cell for cell in cells if cell.spelling == spelling and not cell.refused]


def _total(title: str, cells: Sequence[Cell]) -> Table:
    figures = FIGURES | TOKENS
    tallies = {label: _sum(cell.ways[way] for cell in cells) for way, label in WAYS.items()}
    rows = [(label, *(figure(tally) for figure in figures.values())) for label, tally in tallies.items()]
    return Table(title, ("way of recording", *figures), tuple(rows))


def _by_habit(title: str, cells: Sequence[Cell]) -> Table:
    rows = []
    for habit, (label, _) in HABITS.items():
        found = [cell for cell in cells if cell.habit == habit]
        tallies = [_sum(cell.ways[way] for cell in found) for way in WAYS]
        shown = (" / ".join(figure(tally) for figure in FIGURES.values()) for tally in tallies)
        rows += [(label, *shown)] if found else []
    return Table(title, ("the agent or the model …", *WAYS.values()), tuple(rows), BY_HABIT)


def _refusals(cells: Sequence[Cell]) -> str:
    refused = {(cell.tokenizer, cell.habit): cell.refused for cell in cells if cell.refused}
    lines = [f"- {tokenizer}, {HABITS[habit][0]}: {words}" for (tokenizer, habit), words in refused.items()]
    return "\n".join(["### Refused, in the templates' own words", "", *(lines or ["Nothing."]), ""])


def _plain(cell: Cell) -> dict[str, JSON]:
    named = {"tokenizer": cell.tokenizer, "habit": cell.habit, "spelling": cell.spelling}
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
