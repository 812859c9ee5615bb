"""The formats of `stenograph export`: its choices, its help and what it checks follow from this table.

It is read by `--help` too, which answers at once: neither numpy nor the nouns are loaded for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from stenograph.export.formats import (
    atropos,
    jsonl,
    openrlhf,
    parquet,
    prime_rl,
    skyrl,
    slime,
    tinker,
    trl,
    verifiers,
    verl,
)

if TYPE_CHECKING:
    from stenograph.core import LogprobKind, Sample


class Format(NamedTuple):
    about: str
    """What one gets."""
    encode: Callable[[Iterable[Sample]], Iterator[bytes]]
    branches: bool = False
    """A rollout of several branches counts once: the consumer is told which rollout a branch is of, or the baseline is
    in the data. Else each row counts as a rollout, and somebody has to say that this is wanted."""
    ratios: LogprobKind | None = None
    """Of which kind the logprobs are that the consumer computes anew, and compares with these; None: it does not."""
    teachers: int = 0
    """How many it has room for."""


MANY = 1_000_000


FORMATS: Mapping[str, Format] = {
    "jsonl": Format("all that is known, a sample a line", jsonl.encode, branches=True, teachers=MANY),
    "parquet": Format(
        "the same as an Apache Parquet file (needs stenograph[parquet])", parquet.encode, branches=True, teachers=MANY
    ),
    "openrlhf": Format("what an agent executor returns, a rollout a line", openrlhf.encode, ratios="temperature"),
    "atropos": Format(
        "ScoredData for the trajectory API, a group a line", atropos.encode, ratios="temperature", teachers=1
    ),
    "verifiers": Format("traces, a rollout a line", verifiers.encode, branches=True),
    "prime-rl": Format("a TrainingBatch, rollouts.bin", prime_rl.encode, branches=True, ratios="temperature"),
    "verl": Format("AgentLoopOutput, a rollout a line", verl.encode, ratios="temperature"),
    "trl": Format("what a rollout_func returns, a group a line", trl.encode, ratios="temperature", teachers=MANY),
    "tinker": Format("Datum, a branch a line", tinker.encode, branches=True, ratios="raw", teachers=MANY),
    "skyrl": Format("GeneratorOutput, a group a line", skyrl.encode, ratios="temperature"),
    "slime": Format("Sample, a rollout a line", slime.encode, ratios="temperature"),
}
