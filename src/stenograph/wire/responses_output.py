"""What is sampled, as the items of a Responses output: one item at a time, opened, filled and closed.

A reply's reasoning, its text and each of its calls are items of their own, in the order in which they are said. JSON is
the fold of the very events that a stream carries: both come from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from stenograph.core import CallDelta, Piece
from stenograph.wire import responses_answer as answer
from stenograph.wire.logprobs import TokenLogprob
from stenograph.wire.responses_names import item_name
from stenograph.wire.responses_tools import Known
from stenograph.wire.responses_writing import CustomCall, FunctionCall, Reasoning, Text, Writing


class Output:
    def __init__(self, turn_id: str, caller_knows: Callable[[str], Known], *, sealed: bool) -> None:
        """`caller_knows`: a tool, by the name that the model calls. `sealed`: reasoning stands in `encrypted_content`
        too."""
        self.items: list[answer.Item] = []
        """Those that are done."""
        self._turn_id = turn_id
        self._caller_knows = caller_knows
        self._sealed = sealed
        self._now: Writing | None = None
        self._texts = self._thoughts = self._calls = 0

    def take(self, piece: Piece, logprobs: list[TokenLogprob]) -> Iterator[answer.OfOutput]:
        """A piece goes on with the call that is under way, thinks, speaks, and begins other calls: in this order."""
        new = next((at for at, delta in enumerate(piece.calls) if delta.id is not None), len(piece.calls))
        for delta in piece.calls[:new]:
            yield from self._call(delta)
        if piece.reasoning:
            yield from self._think(piece.reasoning)
        if piece.content:
            yield from self._speak(piece.content, logprobs)
        for delta in piece.calls[new:]:
            yield from self._call(delta)

    def close(self, status: answer.Status) -> Iterator[answer.OfOutput]:
        """A reply that says nothing and calls nothing is an empty text: so there is something to send back."""
        if not self._texts and not self._calls:
            yield from self._speak("", [])
        yield from self._end(status)

    # -- one item after the other --------------------------------------------------------------------------

    def _think(self, text: str) -> Iterator[answer.OfOutput]:
        if not isinstance(self._now, Reasoning):
            yield from self._begin(Reasoning(self._name("rs", self._thoughts), self._place(), sealed=self._sealed))
            self._thoughts += 1
        assert isinstance(self._now, Reasoning)
        yield self._now.more(text)

    def _speak(self, text: str, logprobs: list[TokenLogprob]) -> Iterator[answer.OfOutput]:
        if not isinstance(self._now, Text):
            yield from self._begin(Text(self._name("msg", self._texts), self._place()))
            self._texts += 1
        assert isinstance(self._now, Text)
        if text:
            yield self._now.more(text, logprobs)

    def _call(self, delta: CallDelta) -> Iterator[answer.OfOutput]:
        if delta.id is not None:
            yield from self._begin(self._new_call(delta.id, self._caller_knows(delta.name or "")))
            self._calls += 1
        if not isinstance(self._now, FunctionCall | CustomCall):
            raise ValueError(f"more of call {delta.index}, which is over or has not begun")
        yield from self._now.more(delta.arguments)

    def _new_call(self, id: str, known: Known) -> Writing:
        if known.custom:
            return CustomCall(self._turn_id, self._calls, self._place(), id, known)
        return FunctionCall(self._name("fc", self._calls), self._place(), id, known)

    def _begin(self, writing: Writing) -> Iterator[answer.OfOutput]:
        yield from self._end("completed")
        self._now = writing
        yield from writing.begun()

    def _end(self, status: answer.Status) -> Iterator[answer.OfOutput]:
        if self._now is not None:
            yield from self._now.ended(status)
            self.items.append(self._now.item(status))
        self._now = None

    def _place(self) -> int:
        """Of the item that is about to begin: the one under way will be done before."""
        return len(self.items) + (self._now is not None)

    def _name(self, kind: Literal["rs", "msg", "fc"], place: int) -> str:
        return item_name(kind, self._turn_id, place)
