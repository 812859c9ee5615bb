"""The events of an answer, folded: what a stream adds up to, whatever protocol it is then written in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stenograph.core import CallDelta, Closed, Done, Event, Opened, Piece, Value


class WholeCall(Value):
    id: str
    name: str
    arguments: str


class Whole(Value):
    """One choice, complete."""

    turn_id: str
    pieces: tuple[Piece, ...]
    """As they came: ids and logprobs become Python objects only where somebody asked for them."""
    closed: Closed

    @property
    def content(self) -> str:
        return "".join(piece.content for piece in self.pieces)

    @property
    def reasoning(self) -> str:
        return "".join(piece.reasoning for piece in self.pieces)

    @property
    def calls(self) -> tuple[WholeCall, ...]:
        return tuple(_calls(delta for piece in self.pieces for delta in piece.calls))

    @property
    def ids(self) -> list[int]:
        return [id for piece in self.pieces for id in piece.ids.tolist()]


class Answer(Value):
    opened: Opened
    choices: tuple[Whole, ...]
    done: Done


def fold(events: Sequence[Event]) -> Answer:
    """Raises `ValueError` for an answer that is not complete: no record, no success (law 5)."""
    (opened,) = (event for event in events if isinstance(event, Opened))
    (done,) = (event for event in events if isinstance(event, Done))
    pieces: list[list[Piece]] = [[] for _ in opened.turn_ids]
    closed: dict[int, Closed] = {}
    for event in events:
        if isinstance(event, Piece):
            pieces[event.choice].append(event)
        elif isinstance(event, Closed):
            closed[event.choice] = event
    if len(closed) != len(pieces):
        raise ValueError(f"{len(pieces)} choices were opened, {len(closed)} closed")
    whole = (Whole(id, tuple(pieces[at]), closed[at]) for at, id in enumerate(opened.turn_ids))
    return Answer(opened, tuple(whole), done)


def _calls(deltas: Iterable[CallDelta]) -> Iterator[WholeCall]:
    by_index: dict[int, list[CallDelta]] = {}
    for delta in deltas:
        by_index.setdefault(delta.index, []).append(delta)
    for parts in by_index.values():
        id = "".join(part.id or "" for part in parts)
        name = "".join(part.name or "" for part in parts)
        yield WholeCall(id, name, "".join(part.arguments for part in parts))
