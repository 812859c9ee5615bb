"""Ways in which a record, its samples or an engine's log can be wrong, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from stenograph.audit.case import Evidence
from stenograph.core import Sample, Turn
from stenograph.engine.log import LoggedCall, LoggedChoice
from stenograph.store.store import StoredSession, TurnsCommitted

T = TypeVar("T")
replace = msgspec.structs.replace
Corrupt = Callable[[Evidence], Evidence]


def edited(items: tuple[T, ...], place: int, change: Callable[[T], T]) -> tuple[T, ...]:
    changed = list(items)
    changed[place] = change(changed[place])
    return tuple(changed)


def other(array: NDArray[Any], place: int = -1, by: float = 1) -> NDArray[Any]:
    """With one value that differs."""
    changed = array.copy()
    changed[place] += by
    return changed


# ------------------------------------------------------------------------------------------------------------- log


def logged(change: Callable[[LoggedCall], LoggedCall]) -> Corrupt:
    return lambda evidence: replace(evidence, log=edited(evidence.log, 3, change))


def said(change: Callable[[LoggedChoice], LoggedChoice]) -> Corrupt:
    return logged(lambda call: replace(call, choices=[change(call.choices[0]), *call.choices[1:]]))


def logprob(value: Any) -> Corrupt:
    return said(lambda choice: replace(choice, logprobs=(*choice.logprobs[:-1], value)))


def stray(session_id: str | None = None) -> Corrupt:
    """A call that the engine had and that left no turn."""

    def corrupt(evidence: Evidence) -> Evidence:
        one = evidence.log[0]
        return replace(
            evidence, log=(*evidence.log, replace(one, request_id="x", session_id=session_id or one.session_id))
        )

    return corrupt


# ---------------------------------------------------------------------------------------------------------- record


def stored(change: Callable[[StoredSession], StoredSession], place: int = 0) -> Corrupt:
    return lambda evidence: replace(evidence, recorded=edited(evidence.recorded, place, change))


def remembered(change: Callable[[StoredSession], StoredSession]) -> Corrupt:
    def corrupt(evidence: Evidence) -> Evidence:
        assert evidence.remembered is not None
        return replace(evidence, remembered=edited(evidence.remembered, 0, change))

    return corrupt


def committed(
    change: Callable[[TurnsCommitted], TurnsCommitted], place: int = 1
) -> Callable[[StoredSession], StoredSession]:
    return lambda session: replace(session, calls=edited(session.calls, place, change))


def first_turn(change: Callable[[Turn], Turn]) -> Callable[[TurnsCommitted], TurnsCommitted]:
    return lambda call: replace(call, turns=edited(call.turns, 0, change))


def of_call(**changes: Any) -> Callable[[TurnsCommitted], TurnsCommitted]:
    """Of the call that its turns share."""

    def change(call: TurnsCommitted) -> TurnsCommitted:
        shared = replace(call.turns[0].call, **changes)
        return TurnsCommitted(tuple(replace(turn, call=shared) for turn in call.turns))

    return change


def renamed(id: str) -> Callable[[TurnsCommitted], TurnsCommitted]:
    return lambda call: first_turn(lambda turn: replace(turn, id=id))(of_call(id=id)(call))


def without_forks(evidence: Evidence) -> Evidence:
    sessions = (
        replace(session, calls=tuple(of_call(fork=None)(call) for call in session.calls))
        for session in evidence.recorded
    )
    return replace(evidence, recorded=tuple(sessions))


# --------------------------------------------------------------------------------------------------------- samples


def sample(change: Callable[[Sample], Sample]) -> Corrupt:
    return lambda evidence: replace(evidence, samples=edited(evidence.samples, 0, change))


def column(name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Corrupt:
    """Past the constructor, which refuses another length."""

    def corrupted(one: Sample) -> Sample:
        copy = replace(one)
        msgspec.structs.force_setattr(copy, name, change(getattr(one, name)))
        return copy

    return sample(corrupted)


def untrained(one: Sample) -> Sample:
    """Consistent in itself: the mask and the spans agree."""
    spans = tuple(replace(span, trained=False) for span in one.spans)
    return replace(one, spans=spans, mask=np.zeros_like(one.mask))
