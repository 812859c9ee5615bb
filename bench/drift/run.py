"""The whole of it: every tokenizer at hand, every habit, every way; what came out, and whether ours is perfect."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.drift import tables
from bench.drift.cells import Bench, Cell
from bench.drift.habits import HABITS, ODD_ONLY
from bench.drift.model import SPELLINGS
from bench.drift.ours import Here
from bench.drift.refused import REFUSED
from bench.report import Scale, Table
from stenograph.core import Value

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "tokenizers"
BUNDLED = "smollm2"
QUICK = ("mistral-nemo", "qwen3")
"""One that does not drop reasoning and one that does; the first has ids of calls, and calls of another form."""


class Extent(Value):
    tokenizers: tuple[str, ...]
    """Folders, or the bundled model's name."""
    seeds: int
    """Rollouts a cell, of each way."""


def extent(*, quick: bool) -> Extent:
    folders = {path.parent.name: str(path.parent) for path in sorted(SHARED.glob("*/tokenizer.json"))}
    chosen = [folders[name] for name in QUICK if name in folders] if quick else list(folders.values())
    return Extent(tuple(chosen) or (BUNDLED,), seeds=1 if quick else 6)


def cells(wanted: Extent) -> list[Cell]:
    """In processes of their own, as many as there are cores: loading a tokenizer is much of the work."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(wanted.tokenizers)), context) as pool:
        made = pool.map(_cells_of, wanted.tokenizers, [wanted.seeds] * len(wanted.tokenizers))
        return [cell for of_one in made for cell in of_one]


def run(scale: Scale) -> list[Table]:
    """The totals. The full run also writes TABLE.md, by habit, and results.json, by tokenizer: both are checked in."""
    wanted = extent(quick=scale.quick)
    measured = cells(wanted)
    if faults := list(problems(measured)):
        raise RuntimeError("\n".join(["drift: this is not what the product promises", *faults]))
    if not scale.quick:
        (HERE / "TABLE.md").write_text(tables.markdown(measured, wanted.seeds))
        (HERE / "results.json").write_text(tables.as_json(measured, wanted.seeds))
    return tables.totals(measured)


def problems(measured: Sequence[Cell]) -> Iterator[str]:
    """Where ours is not perfect, and where a template refuses what is not on the list, or no longer what is."""
    yield from _refusals(measured)
    for cell in measured:
        ours = cell.ways.get("ours")
        if ours is not None and not ours.perfect:
            yield f"{cell.tokenizer}, {cell.habit}, {cell.spelling}: {ours} {cell.faults.get('ours', {})}"


def _refusals(measured: Iterable[Cell]) -> Iterator[str]:
    for cell in measured:
        listed = REFUSED.get((cell.tokenizer, cell.habit))
        if cell.refused != listed:
            yield f"{cell.tokenizer}, {cell.habit}: refused with {cell.refused!r}, listed with {listed!r}"


def _cells_of(where: str, seeds: int) -> list[Cell]:
    return asyncio.run(_measured(where, seeds))


async def _measured(where: str, seeds: int) -> list[Cell]:
    async with Here(where) as gateway:
        bench = Bench(Path(where).name, gateway)
        wanted = [(habit, spelling) for spelling in SPELLINGS for habit in HABITS]
        return [
            await bench.cell(habit, spelling, seeds)
            for habit, spelling in wanted
            if spelling == "odd" or habit not in ODD_ONLY
        ]
