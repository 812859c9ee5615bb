"""The record as somebody reads it who trusts nobody: from the store, by its own reckoning, beside what is in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec
import numpy as np

from stenograph.core import Call, Turn
from stenograph.engine.log import LoggedCall
from tests.stage.stage import Stage

Snapshot: TypeAlias = dict[str, bytes]
"""Every turn, in the store and in memory, as bytes."""


def snapshot(stage: Stage, sessions: Iterable[str]) -> Snapshot:
    found: Snapshot = {}
    for session in sessions:
        stored = {turn.id: exact(turn) for turn in stored_turns(stage, session)}
        live = {turn.id: exact(turn) for turn in stage.tree(session).turns.values()}
        assert live == stored
        found |= stored
    return found


def exact(turn: Turn) -> bytes:
    """To the last bit: arrays by their own bytes."""
    return msgspec.msgpack.encode(turn, enc_hook=lambda array: [str(array.dtype), array.tobytes()])


def stored_turns(stage: Stage, session: str) -> list[Turn]:
    stored = stage.witness.load(session)
    return [turn for committed in stored.calls for turn in committed.turns] if stored else []


def calls_of(turns: Iterable[Turn]) -> list[Call]:
    return list({turn.call.id: turn.call for turn in turns}.values())


class Record:
    """One session's turns beside the engine's log of them."""

    def __init__(self, stage: Stage, session: str) -> None:
        self.session = session
        self.turns = {turn.id: turn for turn in stored_turns(stage, session)}
        self.calls = calls_of(self.turns.values())
        self._log = {logged.request_id: logged for logged in stage.watched.calls}

    def logged(self, call: Call) -> LoggedCall:
        return self._log[call.request_id]

    def prompt(self, call: Call) -> list[int]:
        """What the record says that the engine was sent."""
        return [*self.path(call.parent), *call.context.tolist()]

    def path(self, turn_id: str | None) -> list[int]:
        return [id for turn in reversed(list(self._back(turn_id))) for id in ids_of(turn)]

    def conversation(self, call: Call) -> Iterator[Turn]:
        """The turns whose replies its messages follow, the last one first."""
        while call.after is not None:
            turn = self.turns[call.after]
            yield turn
            call = turn.call

    def _back(self, turn_id: str | None) -> Iterator[Turn]:
        while turn_id is not None:
            turn = self.turns[turn_id]
            yield turn
            turn_id = turn.call.parent


def ids_of(turn: Turn) -> list[int]:
    return [*turn.call.context.tolist(), *sampled(turn)]


def sampled(turn: Turn) -> list[int]:
    return [id for part in turn.parts for id in part.ids.tolist()]


def logprobs(turn: Turn) -> bytes:
    return b"".join(part.logprobs.tobytes() for part in turn.parts)


def as_recorded(logged: Iterable[float]) -> bytes:
    return np.array(list(logged), np.float32).tobytes()
