"""The record beside itself, beside memory, and beside what callers were told: laws 3, 4 and 5."""

from __future__ import annotations

import msgspec
import numpy as np

from stenograph.audit.case import Case, Verdicts
from stenograph.core import Call, SessionFacts, Turn
from stenograph.store.store import StoredSession


def append_only(case: Case) -> Verdicts:
    """What was committed is there, unchanged, and in the order in which it grew; no session reaches into another."""
    for session in case.evidence.recorded:
        before: set[str | None] = {None}
        for committed in session.calls:
            yield 0, _fault_of_place(committed.turns[0].call, session.facts, before)
            before |= {turn.id for turn in committed.turns}
    if case.evidence.remembered is not None:
        yield from _compared(case, case.evidence.remembered)


def _fault_of_place(call: Call, facts: SessionFacts, before: set[str | None]) -> str | None:
    if call.session_id != facts.id:
        return f"call {call.id}: it stands in session {facts.id} and is of {call.session_id}"
    strangers = [id for id in (call.parent, call.after) if id not in before]
    return (
        f"call {call.id}: it continues {strangers[0]}, which its session does not have before it" if strangers else None
    )


def _compared(case: Case, remembered: tuple[StoredSession, ...]) -> Verdicts:
    in_memory = {turn.id: turn for session in remembered for call in session.calls for turn in call.turns}
    for id in {**in_memory, **case.turns}:
        yield 1, _unequal(f"turn {id}", in_memory.get(id), case.turns.get(id))
    known = {session.facts.id: session.facts for session in remembered}
    stored = {id: session.facts for id, session in case.sessions.items()}
    for id in {**known, **stored}:
        yield 1, _unequal(f"session {id}", known.get(id), stored.get(id))


def _unequal(what: str, memory: Turn | SessionFacts | None, disk: Turn | SessionFacts | None) -> str | None:
    if disk is None or memory is None:
        return f"{what}: {'the store' if disk is None else 'memory'} does not have it"
    return None if _exact(memory) == _exact(disk) else f"{what}: the store has it otherwise than memory"


def _exact(value: Turn | SessionFacts) -> bytes:
    return msgspec.msgpack.encode(value, enc_hook=np.ndarray.tobytes)


def explained_forks(case: Case) -> Verdicts:
    """Without a reason stand only a session's first call and the first to go on from the turn that its caller meant."""
    for session in case.evidence.recorded:
        continued: set[str | None] = set()
        for place, committed in enumerate(session.calls):
            call = committed.turns[0].call
            plain = place == 0 or (call.after is not None and call.parent == call.after not in continued)
            yield 1, None if plain or call.fork else f"call {call.id}: it extends no turn and does not say why"
            continued.add(call.after)


def recorded_first(case: Case) -> Verdicts:
    for id, was_there in case.evidence.answered.items():
        fault = "it is not in the store" if id not in case.turns else "its answer was out before it was in the store"
        yield 1, None if was_there and id in case.turns else f"turn {id}: {fault}"
