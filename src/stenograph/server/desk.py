"""What every handler of one gateway shares, and the few questions that all of them ask of it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping

import msgspec

from stenograph.config import Settings
from stenograph.core import Sample, SessionFacts
from stenograph.errors import CallerError, NotFound, Overloaded, Unauthorized
from stenograph.export.sample import Shared, samples
from stenograph.house import House
from stenograph.live import LiveSession
from stenograph.server.deliveries import Deliveries
from stenograph.server.metrics import Metrics
from stenograph.server.registry import Registry, hash_key, new_key
from stenograph.session.tree import Tree
from stenograph.teacher.opening import Reading
from stenograph.teacher.teachers import Teachers
from stenograph.turn import Ticket
from stenograph.wire.body import Id
from stenograph.wire.codec import Decoded
from stenograph.wire.sampling import given_by_session

log = logging.getLogger("stenograph")
BEARER = "bearer "
"""HTTP's schemes are of any case."""
LOST_TRAINING = 10
"""After so many calls without a session, and at each power of ten of it, a warning."""
OWN_SESSION_TTL = 3600.0
"""Seconds, of a session that nobody asked for: its first call was its last, but somebody may look for its record."""


class Desk:
    def __init__(
        self,
        settings: Settings,
        house: House,
        registry: Registry,
        deliveries: Deliveries,
        metrics: Metrics,
        teachers: Teachers,
    ) -> None:
        self.settings = settings
        self.house = house
        self.registry = registry
        self.deliveries = deliveries
        self.metrics = metrics
        self.teachers = teachers
        self._without_session = 0
        self._calls = 0

    # -- sessions ------------------------------------------------------------------------------------------

    def session_of(self, in_path: str | None, headers: Mapping[str, str], in_body: str | None) -> LiveSession:
        """CONTRACT 4's order: path, header, key, body, the default; with none of them a session of its own."""
        by_key = self._by_key(headers)
        id = in_path or headers.get("x-session-id") or by_key or in_body or self.settings.default_session
        if id is None:
            return self._own_session()
        self._check_key(id, by_key)
        return self.registry.get(id) or self._opened_by_name(id)

    def known_session(self, in_path: str | None, headers: Mapping[str, str]) -> LiveSession | None:
        """The same where the body says nothing. None: no session that is there already."""
        by_key = self._by_key(headers)
        id = in_path or headers.get("x-session-id") or by_key or self.settings.default_session
        if id is None or self.registry.get(id) is None:
            return None
        self._check_key(id, by_key)
        return self.registry.get(id)

    def session_to_look_at(self, in_path: str | None, headers: Mapping[str, str], in_body: str | None) -> LiveSession:
        """The same for a call that records nothing: a session that is not there is an empty one, and is not opened."""
        by_key = self._by_key(headers)
        id = in_path or headers.get("x-session-id") or by_key or in_body or self.settings.default_session
        if id is None:
            self._check_anonymous()
            return LiveSession(self.facts(), Tree())
        self._check_key(id, by_key)
        check_id(id, "session")
        return self.registry.get(id) or LiveSession(self.facts(id), Tree())

    def facts(self, id: str | None = None, key: str | None = None) -> SessionFacts:
        now = self.house.now()
        return SessionFacts(
            id=id or secrets.token_hex(8), key_hash=hash_key(key or new_key()), created_at=now, touched_at=now
        )

    def _by_key(self, headers: Mapping[str, str]) -> str | None:
        return next((id for key in _keys(headers) if (id := self.registry.by_key(key))), None)

    def _check_key(self, id: str, by_key: str | None) -> None:
        if self.settings.admin_key is not None and by_key != id:
            self.registry.must(id)
            raise Unauthorized(f"session {id} needs its own api_key, as bearer or x-api-key")

    def _opened_by_name(self, id: str) -> LiveSession:
        if self.settings.admin_key is not None:
            return self.registry.must(id)
        check_id(id, "session")
        session, _ = self.registry.open(self.facts(id))
        return session

    def _check_anonymous(self) -> None:
        if self.settings.admin_key is not None:
            raise Unauthorized("no session: send a session's api_key, as bearer or x-api-key")

    def _own_session(self) -> LiveSession:
        self._check_anonymous()
        self._check_room()
        self._without_session += 1
        self.metrics.without_session.inc()
        if self._without_session >= LOST_TRAINING and _is_power_of_ten(self._without_session):
            log.warning(
                "%d calls came without a session, so each is a rollout of its own and multi-turn training is lost. "
                "Point the agent at /s/SESSION/v1, or send the header X-Session-ID.",
                self._without_session,
            )
        session, _ = self.registry.open(msgspec.structs.replace(self.facts(), ttl=OWN_SESSION_TTL))
        return session

    async def samples(self, session: LiveSession, shared: Shared, teacher: str | None) -> list[Sample]:
        """As the session stands now; with a teacher, which is asked for what is not on record."""
        found = samples(session.facts, list(session.tree.turns.values()), shared)
        if teacher is None:
            return found
        id, at = session.facts.id, session.facts.created_at
        try:
            return await self.teachers.taught(teacher, [Reading(sample, session.tree, at) for sample in found])
        finally:
            if self.registry.get(id) is None:  # deleted meanwhile: what was said of it since then goes, too
                await self.house.store.delete(id)

    # -- calls ---------------------------------------------------------------------------------------------

    def admit(self) -> None:
        """One more call, until it has `left`. Each holds its body and its tokens in memory, so there may be so many."""
        self._check_room()
        self._calls += 1
        self.metrics.in_flight.inc()

    def left(self) -> None:
        self._calls -= 1
        self.metrics.in_flight.dec()

    def _check_room(self) -> None:
        if self._calls >= self.settings.max_calls:
            raise Overloaded(f"{self._calls} calls are under way already, which is all that may be")

    def check_model(self, model: str, *, under_session: bool) -> None:
        """'' is a caller that leaves the choice to us, where its protocol has it."""
        known = self.models
        if model and not under_session and model not in known:
            raise NotFound(
                f"there is no model {model}; there is {', '.join(known)}", code="model_not_found", param="model"
            )

    @property
    def models(self) -> tuple[str, ...]:
        return (self.settings.model or self.house.info.model, *self.settings.model_alias)

    def ticket(self, session: LiveSession, decoded: Decoded, idempotency_key: str | None) -> Ticket:
        call_id = secrets.token_hex(12)
        sampling = session.facts.sampling
        return Ticket(
            call_id=call_id,
            turn_ids=tuple(f"{call_id}.{choice}" for choice in range(decoded.ask.n)),
            body_hash=decoded.body_hash,
            idempotency_key=idempotency_key,
            streamed=decoded.stream,
            defaults=given_by_session(sampling.defaults),
            force=given_by_session(sampling.force),
        )

    def check_admin(self, headers: Mapping[str, str]) -> None:
        expected = self.settings.admin_key
        if expected is None:
            return
        if not any(secrets.compare_digest(sent.encode(), expected.encode()) for sent in _keys(headers)):
            raise Unauthorized("this call needs the admin key, as bearer or x-api-key")


def _keys(headers: Mapping[str, str]) -> list[str]:
    """A client may send two, of which one is a placeholder."""
    bearer = headers.get("authorization", "")
    key = bearer[len(BEARER) :] if bearer.lower().startswith(BEARER) else bearer
    return [key for key in (key.strip(), headers.get("x-api-key", "")) if key]


def check_id(id: str, param: str) -> None:
    try:
        msgspec.convert(id, Id)
    except msgspec.ValidationError as error:
        raise CallerError(f"{param}: 1 to 128 characters of A-Z a-z 0-9 . _ : -", param=param) from error


def _is_power_of_ten(number: int) -> bool:
    return str(number).strip("0") == "1"
