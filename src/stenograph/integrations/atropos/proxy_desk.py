"""What all calls of one proxy share: whose engines there are, and which sessions are under way."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stenograph.core import Turn, Value
from stenograph.errors import NotFound
from stenograph.gateway import Session
from stenograph.integrations.atropos import proxy_wire
from stenograph.integrations.atropos.homes import Home, Place
from stenograph.integrations.atropos.speech import Speech
from stenograph.live import LiveSession
from stenograph.server.desk import Desk


class Held(Value):
    """A session of the proxy's, from its creation to its deletion."""

    place: Place
    session: Session
    speech: Speech
    wanted: proxy_wire.CreateProxySession

    @property
    def desk(self) -> Desk:
        return self.place.gateway._at_desk()

    @property
    def live(self) -> LiveSession:
        return self.desk.registry.must(self.session.id)

    @property
    def turns(self) -> list[Turn]:
        return list(self.session.turns.values())

    def asked(self, raw: bytes, model: str) -> bytes:
        """The gateway's own body for the same call."""
        told = proxy_wire.chat(raw, model)
        if isinstance(told.get("messages"), list):
            told["messages"] = self.speech.as_recorded(told["messages"])
        return msgspec.json.encode(told)


class ProxyDesk:
    def __init__(self, home: Home) -> None:
        self.home = home
        self.held: dict[str, Held] = {}

    def known(self, id: str, headers: Mapping[str, str]) -> Held:
        held = self.held.get(id)
        if held is None:
            raise NotFound(f"there is no session {id}", code="session_not_found")
        held.desk.session_to_look_at(id, headers, None)  # with an admin key, only for who has the session's
        return held
