"""Looks on at the wire: whatever tells a caller that its call succeeded has to find the turns in the record (law 5)."""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stenograph.store.store import StoredSession

_ENDS = re.compile(rb'"finish_reason":"|data: \[DONE\]|"stop_reason":"|event: message_stop')
"""Of chat, and of Messages."""
_TURN = re.compile(rb'"turn_id":"([^"]+)"')


class Witness:
    def __init__(self, app: ASGIApp, load: Callable[[str], StoredSession | None]) -> None:
        """`load` reads a session from the record as somebody else would, who has only the store."""
        self.load = load
        self.successes = 0
        """How often success was told."""
        self.breaches: list[str] = []
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(self)

        async def watched(message: Message) -> None:
            exchange.look(message)
            await send(message)

        await self._app(scope, receive, watched)

    def require(self, session_id: str, turn_ids: set[str], told: str) -> None:
        self.successes += 1
        stored = self.load(session_id)
        there = {turn.id for call in stored.calls for turn in call.turns} if stored else set()
        if missing := turn_ids - there:
            self.breaches.append(f"{told} was told before {sorted(missing)} of session {session_id} were in the record")


class _Exchange:
    """One answer on its way out."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._session = ""
        self._turns: set[str] = set()

    def look(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start(message)
        elif self._turns:
            self._frame(message.get("body", b""))

    def _start(self, message: Message) -> None:
        headers = {name.lower(): value.decode() for name, value in message["headers"]}
        if message["status"] != 200 or b"x-turn-id" not in headers:
            return
        self._session, self._turns = headers[b"x-session-id"], {headers[b"x-turn-id"]}
        if not headers[b"content-type"].startswith("text/event-stream"):
            self._witness.require(self._session, self._turns, "a JSON answer")

    def _frame(self, frame: bytes) -> None:
        self._turns |= {turn.decode() for turn in _TURN.findall(frame)}
        if _ENDS.search(frame):
            self._witness.require(self._session, self._turns, "the end of an answer")
