"""An audit: each law, how much it was checked on, and what was found against it.

Pure, so that tests and the demo hold sessions to the same laws. Laws 8 and 9 are of the making of a prompt and cannot
be seen in a record; they are tests.
"""

from __future__ import annotations

from collections.abc import Callable

from stenograph.audit import of_record, of_samples, of_the_engine
from stenograph.audit.case import Case, Evidence, Verdicts
from stenograph.core import Value


class Checked(Value):
    law: str
    count: int
    things: str
    """What was counted."""
    findings: tuple[str, ...]
    """Empty: the law holds on all of them."""


LAWS: tuple[tuple[str, str, Callable[[Case], Verdicts]], ...] = (
    ("1 engine truth", "turns and spans are what the engine was sent and returned", of_the_engine.engine_truth),
    ("2 no fabrication", "logprobs are the engine's, and possible", of_the_engine.no_fabrication),
    ("3 append-only", "turns and sessions on disk equal those in memory", of_record.append_only),
    ("4 explained forks", "calls extend what they could, or say why not", of_record.explained_forks),
    ("5 recorded first", "turns were on disk when their answer was out", of_record.recorded_first),
    (
        "6 one call, one turn",
        "calls in the engine's log and in the record, one to one",
        of_the_engine.one_call_one_turn,
    ),
    ("7 equal lengths", "samples with columns of one length", of_samples.equal_lengths),
    ("trained once", "sampled tokens are trained exactly once", of_samples.trained_once),
)


def audit(evidence: Evidence) -> tuple[Checked, ...]:
    case = Case(evidence)
    return tuple(_checked(law, things, list(check(case))) for law, things, check in LAWS)


def _checked(law: str, things: str, verdicts: list[tuple[int, str | None]]) -> Checked:
    return Checked(
        law=law,
        count=sum(count for count, _ in verdicts),
        things=things,
        findings=tuple(fault for _, fault in verdicts if fault is not None),
    )
