"""What an audit looks at, indexed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np

from stenograph.core import Call, Ids, Sample, Turn, Value
from stenograph.engine.log import LoggedCall, LoggedChoice
from stenograph.store.store import StoredSession

Verdicts: TypeAlias = Iterator[tuple[int, str | None]]
"""How many things were looked at, and what is wrong with them, in words; None where nothing is."""
NOTHING: Ids = np.zeros(0, np.int32)


class Evidence(Value):
    recorded: tuple[StoredSession, ...]
    """As the store has them, read again."""
    samples: tuple[Sample, ...]
    """All of those sessions, made with `shared=once`."""
    log: tuple[LoggedCall, ...]
    """The truth: written by the engine's side, before anything of ours had seen it."""
    remembered: tuple[StoredSession, ...] | None = None
    """The same sessions as memory has them; None: not to be compared."""
    answered: Mapping[str, bool] = {}
    """Turn ids that a caller was answered with, and whether the store had each of them when it was."""


class Case:
    """Built in the order of commits, so that a record which contradicts itself is a finding and not an endless loop."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.sessions = {session.facts.id: session for session in evidence.recorded}
        self.commits = [committed for session in evidence.recorded for committed in session.calls]
        self.turns = {turn.id: turn for committed in self.commits for turn in committed.turns}
        self.calls: dict[str, Call] = {turn.call.id: turn.call for turn in self.turns.values()}
        self.log = {logged.request_id: logged for logged in evidence.log}
        self.times_recorded = Counter(call.request_id for call in self.calls.values())
        self.times_logged = Counter(logged.request_id for logged in evidence.log)
        self._ends: dict[str | None, Ids] = {None: NOTHING}
        for turn in self.turns.values():
            if turn.call.parent in self._ends:
                self._ends[turn.id] = np.concatenate([self._ends[turn.call.parent], turn.call.context, turn.sampled])

    def end_of(self, turn_id: str | None) -> Ids | None:
        """All ids from the root to the end of a turn; None where the path is broken."""
        return self._ends.get(turn_id)

    def logged(self, turn: Turn) -> LoggedChoice | None:
        """What the engine itself says that it returned."""
        call = self.log.get(turn.call.request_id)
        return call.choices[turn.choice] if call and 0 <= turn.choice < len(call.choices) else None
