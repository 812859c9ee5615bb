"""The record and its samples beside the engine's own log: laws 1, 2 and 6."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from stenograph.audit.case import Case, Verdicts
from stenograph.core import JSON, Attempt, Sample, Span, State, Turn
from stenograph.engine.log import LoggedCall

SENTINEL = -9999.0
"""vLLM's word for minus infinity, which no token that was sampled has."""


def engine_truth(case: Case) -> Verdicts:
    for turn in case.turns.values():
        yield 1, _fault_of_turn(case, turn)
    for sample in case.evidence.samples:
        for span in sample.spans:
            yield 1, _fault_of_span(case, sample, span)


def _fault_of_turn(case: Case, turn: Turn) -> str | None:
    call, where = case.log.get(turn.call.request_id), f"turn {turn.id}"
    said, path = case.logged(turn), case.end_of(turn.call.parent)
    if call is None or said is None:
        return f"{where}: the engine's log knows nothing of it"
    if path is None:
        return f"{where}: it continues {turn.call.parent}, which is not before it"
    if difference := _differ(np.concatenate([path, turn.call.context]), call.prompt):
        return f"{where}: its prompt is not what the engine was sent, {difference}"
    if difference := _differ(turn.sampled, said.ids) or _differ(turn.logprobs, said.logprobs):
        return f"{where}: its tokens or logprobs are not what the engine returned, {difference}"
    if _plain(turn.call.sampling) != _plain(call.sampling):
        return f"{where}: its sampling parameters are not those that the engine was sent"
    return None


def _fault_of_span(case: Case, sample: Sample, span: Span) -> str | None:
    where = f"sample {sample.id}, span {span.start}:{span.end}"
    turn = case.turns.get(span.turn_id)
    said = case.logged(turn) if turn else None
    if turn is None or said is None:
        return f"{where}: the engine's log knows nothing of its turn {span.turn_id}"
    before = sum(len(part.ids) for part in turn.parts[: span.part])
    sent = [*case.log[turn.call.request_id].prompt, *said.ids[:before]]
    returned = slice(before, before + span.end - span.start)
    difference = (
        _differ(sample.tokens[: span.start], sent)
        or _differ(sample.tokens[span.start : span.end], said.ids[returned])
        or _differ(sample.logprobs[span.start : span.end], said.logprobs[returned])
    )
    return f"{where}: not what the engine was sent and returned, {difference}" if difference else None


def _differ(kept: NDArray[Any], logged: Sequence[JSON]) -> str | None:
    """Bit for bit, in the precision in which we keep it."""
    try:
        truth = np.array(logged, kept.dtype)
    except (TypeError, ValueError, OverflowError):
        return "the log has what is no number"
    if len(kept) != len(truth):
        return f"{len(kept)} of them where the log has {len(truth)}"
    unequal = np.flatnonzero(kept.view(np.uint32) != truth.view(np.uint32))
    return f"first at {unequal[0]}: {kept[unequal[0]]} where the log has {truth[unequal[0]]}" if len(unequal) else None


def _plain(value: Any) -> JSON:
    return msgspec.json.decode(msgspec.json.encode(value))


# ------------------------------------------------------------------------------------------------------------ law 2


def no_fabrication(case: Case) -> Verdicts:
    """Of the log, whose values the record repeats, and of the record, should it have values that the log has not."""
    for turn in case.turns.values():
        said = case.logged(turn)
        logged = said.logprobs if said else ()
        ids = said.ids if said else ()
        lengths = None if len(logged) == len(ids) else f"{len(ids)} ids with {len(logged)} logprobs"
        fault = lengths or next(
            (bad for bad in map(_fault_of_logprob, [*logged, *turn.logprobs.tolist()]) if bad), None
        )
        yield turn.sampled_tokens, f"turn {turn.id}: {fault}" if fault else None


def _fault_of_logprob(logprob: JSON) -> str | None:
    if isinstance(logprob, bool) or not isinstance(logprob, int | float):
        return f"a logprob that is no number: {logprob!r}"
    if not math.isfinite(logprob):
        return f"a logprob that is not finite: {logprob}"
    return f"an impossible logprob: {logprob}" if logprob > 0 or logprob == SENTINEL else None


# ------------------------------------------------------------------------------------------------------------ law 6


def one_call_one_turn(case: Case) -> Verdicts:
    for committed in case.commits:
        yield 1, _fault_of_call(case, committed.turns)
    lost: dict[str, list[str]] = {}
    for logged in case.evidence.log:
        if logged.request_id not in case.times_recorded:
            lost.setdefault(logged.session_id, []).append(logged.request_id)
    for session_id, request_ids in lost.items():
        yield len(request_ids), _fault_of_lost(case, session_id, request_ids)


def _fault_of_call(case: Case, turns: Sequence[Turn]) -> str | None:
    call = turns[0].call
    logged, times, where = case.log.get(call.request_id), case.times_logged[call.request_id], f"call {call.id}"
    if logged is None or times != 1:
        return f"{where}: it stands {times} times in the engine's log"
    if case.times_recorded[call.request_id] != 1:
        return f"{where}: another recorded call has its request id"
    return next((f"{where}: {fault}" for fault in _mismatches(logged, turns)), None)


def _mismatches(logged: LoggedCall, turns: Sequence[Turn]) -> Iterator[str]:
    call = turns[0].call
    if logged.session_id != call.session_id:
        yield f"the engine was called for session {logged.session_id}"
    if [turn.choice for turn in turns] != list(range(logged.n)) or call.n != logged.n:
        yield f"{logged.n} choices were sampled, and {len(turns)} turns are recorded"
    if logged.aborted or any(choice.finish_reason is None for choice in logged.choices):
        yield "the engine never finished it"


def _fault_of_lost(case: Case, session_id: str, request_ids: Sequence[str]) -> str | None:
    """Calls that left no turn are legal where they are counted. What a cancelled session had under way is not."""
    session = case.sessions.get(session_id)
    if session is None:
        return f"session {session_id}: the engine was called for it, and it is not recorded"
    attempts = sum(session.facts.attempts.get(attempt, 0) for attempt in Attempt)
    if len(request_ids) <= attempts or session.facts.state is State.CANCELLED:
        return None
    return f"session {session_id}: {len(request_ids)} calls left no turn ({request_ids[0]} …), {attempts} are counted"
