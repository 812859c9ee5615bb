"""The calls of one session that are under way, or were answered to nobody: where a repeat finds its first try.

CONTRACT 4: a call is a repeat where its `Idempotency-Key` is the same, or where its body is equal and either the SDK
says that it is a retry or the first caller's connection is gone. Any other equal body is a new sample.
"""

from __future__ import annotations

from stenograph.core import Call
from stenograph.errors import StenographError
from stenograph.server.flight import Flight, Work
from stenograph.session.tree import Tree
from stenograph.turn import Ticket


class Flights:
    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._flying: list[Flight] = []
        self._missed: list[str] = []
        """Ids of calls whose caller went away before the answer was out, and that nobody has repeated since."""

    @property
    def under_way(self) -> bool:
        return any(not flight.over for flight in self._flying)

    def start(self, ticket: Ticket, work: Work) -> Flight:
        self._flying = [flight for flight in self._flying if not flight.over]
        flight = Flight(ticket, work, self._grace)
        self._flying.append(flight)
        return flight

    def repeated(self, ticket: Ticket, tree: Tree, *, retried: bool) -> Flight | Call | None:
        """The call that this one repeats: still under way, or committed."""
        if ticket.idempotency_key is not None:
            same_key = [f for f in self._live() if f.ticket.idempotency_key == ticket.idempotency_key]
            return same_key[-1] if same_key else tree.with_key(ticket.idempotency_key)
        same_body = [flight for flight in self._live() if flight.ticket.body_hash == ticket.body_hash]
        left = [flight for flight in same_body if not flight.listeners]
        if left:
            self.delivered(left[0].ticket.call_id)
            return left[0]
        if missed := self._claimed(ticket.body_hash, tree):
            return missed
        if not retried:
            return None
        return same_body[0] if same_body else tree.latest_with_body(ticket.body_hash)

    def missed(self, call_id: str) -> None:
        """Its caller went away before the answer was out; the call itself may go on, and be committed."""
        self._missed.append(call_id)

    def delivered(self, call_id: str) -> None:
        """Or about to be: a repeat waits for it."""
        if call_id in self._missed:
            self._missed.remove(call_id)

    def abort(self, why: StenographError | None = None) -> None:
        for flight in self._flying:
            flight.abort(why)

    async def ended(self) -> None:
        for flight in self._flying:
            await flight.ended()

    def _live(self) -> list[Flight]:
        """Those that a repeat can still join."""
        return [flight for flight in self._flying if not flight.over and not flight.aborted]

    def _claimed(self, body_hash: str, tree: Tree) -> Call | None:
        """A committed call that was missed. It is whose repeat comes first: the next equal call is a new sample."""
        flying = {flight.ticket.call_id for flight in self._live()}
        self._missed = [call_id for call_id in self._missed if call_id in tree.calls or call_id in flying]
        calls = (tree.calls.get(call_id) for call_id in self._missed)
        found = next((call for call in calls if call is not None and call.body_hash == body_hash), None)
        if found is not None:
            self._missed.remove(found.id)
        return found
