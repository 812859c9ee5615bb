"""A delta of the scripted engine as it goes onto a wire: before anyone has looked whether it is true."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

import msgspec

from stenograph.core import JSON, Finish, Value
from stenograph.engine.evidence import SENTINEL
from stenograph.engine.odds import Row
from stenograph.engine.plan import Line
from stenograph.engine.script import FaultKind


class Raw(Value):
    choice: int
    ids: list[int]
    logprobs: list[JSON]
    """Floats, where no fault is at work."""
    rows: list[Row]
    text: str
    finish: Finish | None = None


def raws(lines: Sequence[Line], chunk: int) -> list[Raw]:
    """All deltas of a call, the choices taking turns, as they do in an engine's batch."""
    chunks = [list(_chunks(choice, line, chunk)) for choice, line in enumerate(lines)]
    return [raw for together in zip_longest(*chunks) for raw in together if raw is not None]


def _chunks(choice: int, line: Line, chunk: int) -> Iterator[Raw]:
    starts = range(0, len(line.ids), chunk) or range(1)
    for start in starts:
        part = slice(start, start + chunk)
        ids, rows = line.ids[part], line.rows[part]
        logprobs = [next(iter(row.values())) for row in rows]
        finish = line.finish if start == starts[-1] else None
        yield Raw(choice, list(ids), logprobs, list(rows), "".join(line.texts[part]), finish)


NO_ID, NO_CHOICE = 10_000_000, 1_000_000
"""Beyond any vocabulary, and beyond any n."""
MISREPORTS: dict[FaultKind, Callable[[Raw], Raw]] = {
    FaultKind.MISSING_LOGPROB: lambda raw: _last_logprob(raw, None),
    FaultKind.SHORT_LOGPROBS: lambda raw: msgspec.structs.replace(raw, logprobs=raw.logprobs[:-1]),
    FaultKind.LONG_LOGPROBS: lambda raw: msgspec.structs.replace(raw, logprobs=[*raw.logprobs, -0.5]),
    FaultKind.POSITIVE: lambda raw: _last_logprob(raw, 0.5),
    FaultKind.NAN: lambda raw: _last_logprob(raw, math.nan),
    FaultKind.SENTINEL: lambda raw: _last_logprob(raw, SENTINEL),
    FaultKind.BAD_ID: lambda raw: msgspec.structs.replace(raw, ids=[*raw.ids[:-1], NO_ID]),
    FaultKind.WRONG_CHOICE: lambda raw: msgspec.structs.replace(raw, choice=NO_CHOICE),
    FaultKind.NEVER_FINISH: lambda raw: msgspec.structs.replace(raw, finish=None),
}
"""What each lie does to a delta. Told of the last delta of choice 0, which has an id and the finish."""


def _last_logprob(raw: Raw, value: JSON) -> Raw:
    return msgspec.structs.replace(raw, logprobs=[*raw.logprobs[:-1], value])


def misreported(raw: Raw, fault: FaultKind | None) -> Raw:
    lie = MISREPORTS.get(fault) if fault else None
    return lie(raw) if lie and raw.choice == 0 and raw.finish else raw
