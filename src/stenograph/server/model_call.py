"""An agent's call: which session, a repeat or a new one, and the answer as JSON or as a stream."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable

from starlette.types import Receive, Scope, Send

from stenograph.core import Attempt, Call, Event, State
from stenograph.errors import (
    CallerError,
    Conflict,
    ContextLengthExceeded,
    EngineError,
    InternalError,
    StenographError,
    StoreError,
)
from stenograph.live import LiveSession
from stenograph.server.connection import Connection, Gone, error_headers
from stenograph.server.desk import Desk
from stenograph.server.flight import Flight
from stenograph.turn import Ticket, replay, take_turn
from stenograph.wire.codec import Codec, Decoded

log = logging.getLogger("stenograph")
JSON_TYPE = {"content-type": "application/json"}
HEARTBEAT = b"\n"
KEEP_ALIVE_SECONDS = 15.0
"""Of silence in a stream. Tunnels and proxies cut a connection that is idle for 60 to 120 s."""
SSE_TYPE = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", "x-accel-buffering": "no"}


class ModelCall:
    """The ASGI application of one protocol's route."""

    def __init__(self, desk: Callable[[], Desk], codec: Codec) -> None:
        self._desk = desk
        self._codec = codec

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = Connection(scope, receive, send)
        headers: dict[str, str] = {}
        try:
            await self._serve(scope, connection, headers)
        except Gone:
            self._desk().metrics.disconnects.inc()
        except StenographError as error:
            await self._refuse(connection, headers, error)
        except Exception:
            log.exception("%s failed", scope["path"])
            await self._refuse(connection, headers, InternalError())

    async def _refuse(self, connection: Connection, headers: dict[str, str], error: StenographError) -> None:
        self._desk().metrics.errors.labels(str(error.status)).inc()
        if connection.started:
            log.warning("an answer was broken off: %s", error.message)
            return
        body = self._codec.error_body(error)
        await connection.answer(error.status, {**JSON_TYPE, **headers, **error_headers(error)}, body)

    async def _serve(self, scope: Scope, connection: Connection, headers: dict[str, str]) -> None:
        desk = self._desk()
        in_path = scope["path_params"].get("session")
        decoded = await self._decoded(desk, connection, in_path)
        desk.check_model(decoded.ask.model, under_session=in_path is not None)
        session = desk.session_of(in_path, connection.headers, decoded.session_id)
        headers["x-session-id"] = session.facts.id
        answer = self._answer_to(desk, session, decoded, connection.headers)
        headers["x-turn-id"] = answer.turn_ids[0]
        await answer.to(connection, decoded, headers)

    async def _decoded(self, desk: Desk, connection: Connection, in_path: str | None) -> Decoded:
        """A body that cannot be read names no session; where one was named otherwise, the call counts there."""
        try:
            body = await connection.body(desk.settings.max_body_bytes)
            return self._codec.decode(body, desk.house.renderer.tokenizer.bytes_of)
        except CallerError:
            session = desk.known_session(in_path, connection.headers)
            if session is not None:
                await _count(desk, session, Attempt.REFUSED)
            raise

    def _answer_to(self, desk: Desk, session: LiveSession, decoded: Decoded, headers: dict[str, str]) -> _Answer:
        flights = desk.registry.flights(session)
        ticket = desk.ticket(session, decoded, headers.get("idempotency-key"))
        retried = _number(headers.get("x-stainless-retry-count")) > 0
        first_try = flights.repeated(ticket, session.tree, retried=retried)
        if first_try is None:
            desk.admit()
            first_try = flights.start(ticket, lambda emit, seal: _fly(desk, session, decoded, ticket, emit, seal))
        answer = _Answer(desk, session, first_try)
        if len(answer.turn_ids) != decoded.ask.n:
            raise CallerError(f"Idempotency-Key: it is that of a call with n = {len(answer.turn_ids)}", param="n")
        return answer


class _Answer:
    """The events of one call, to one connection: from the flight, or from the record."""

    def __init__(self, desk: Desk, session: LiveSession, source: Flight | Call) -> None:
        self._desk = desk
        self._session = session
        self._source = source
        if isinstance(source, Flight):
            self.call_id, self.turn_ids = source.ticket.call_id, source.ticket.turn_ids
        else:
            self.call_id, self.turn_ids = source.id, tuple(turn.id for turn in session.tree.choices(source))

    async def to(self, connection: Connection, decoded: Decoded, headers: dict[str, str]) -> None:
        flights = self._desk.registry.flights(self._session)
        if isinstance(self._source, Flight):
            self._source.join()
        try:
            send = self._stream if decoded.stream else self._json
            await connection.while_connected(send(connection, decoded, headers))
            flights.delivered(self.call_id)
        except Gone:
            flights.missed(self.call_id)
            raise
        finally:
            if isinstance(self._source, Flight):
                self._source.leave()

    async def _json(self, connection: Connection, decoded: Decoded, headers: dict[str, str]) -> None:
        """Where heartbeats are wanted, silence is filled with white space, which JSON allows in front. A failure behind
        it can only break the answer off: the caller asks again, and is told by a status."""
        said: list[Event] = []
        async for event in self._events(connection, self._desk.settings.heartbeat or None):
            if event is not None:
                said.append(event)
                continue
            if not connection.started:
                await connection.start(200, {**JSON_TYPE, **headers})
            await connection.more(HEARTBEAT)
        body = decoded.encoder.json(said)
        if connection.started:
            await connection.last(body)
        else:
            await connection.answer(200, {**JSON_TYPE, **headers}, body)

    async def _stream(self, connection: Connection, decoded: Decoded, headers: dict[str, str]) -> None:
        """The status waits for the first event, or for the first silence: what fails before is told by its status."""
        events = self._events(connection, KEEP_ALIVE_SECONDS)
        first = await anext(events)
        await connection.start(200, {**SSE_TYPE, **headers})
        async for frame in _frames(first, events, decoded, self._desk):
            if frame:
                await connection.more(frame)
        await connection.last(b"")

    async def _events(self, connection: Connection, patience: float | None) -> AsyncIterator[Event | None]:
        """None: for so long nothing went out to the caller, whatever was sampled meanwhile."""
        if isinstance(self._source, Flight):
            async for event in self._source.events(lambda: connection.rest_of(patience)):
                yield event
            return
        for event in replay(self._session.tree, self._session.tree.choices(self._source)):
            yield event


async def _frames(
    first: Event | None, rest: AsyncIterator[Event | None], decoded: Decoded, desk: Desk
) -> AsyncIterator[bytes]:
    encoder = decoded.encoder
    yield encoder.sse_idle() if first is None else encoder.sse(first)
    try:
        async for event in rest:
            yield encoder.sse_idle() if event is None else encoder.sse(event)
    except StenographError as error:
        desk.metrics.errors.labels(str(error.status)).inc()
        yield decoded.encoder.sse_error(error)


async def _fly(
    desk: Desk,
    session: LiveSession,
    decoded: Decoded,
    ticket: Ticket,
    emit: Callable[[Event], None],
    seal: Callable[[], None],
) -> None:
    """The turn itself; a failure is counted where it left no turn."""
    try:
        await take_turn(desk.house, session, decoded.ask, ticket, emit, seal)
    except (Exception, asyncio.CancelledError) as failure:
        attempt = _attempt(session, failure)
        if attempt is not None:
            await _count(desk, session, attempt)
        raise
    finally:
        desk.left()
    call = session.tree.calls[ticket.call_id]
    desk.metrics.committed(call, session.tree.choices(call))


def _attempt(session: LiveSession, failure: BaseException) -> Attempt | None:
    """None: the session itself was ended, and so says why."""
    match failure:
        case asyncio.CancelledError():
            return None if session.facts.state is State.CANCELLED else Attempt.DISCONNECTED
        case Conflict():
            return None
        case ContextLengthExceeded():
            return Attempt.CONTEXT_OVERFLOW
        case CallerError():
            return Attempt.REFUSED
        case EngineError():
            return Attempt.ENGINE_ERROR
        case _:
            return Attempt.GATEWAY_ERROR


async def _count(desk: Desk, session: LiveSession, attempt: Attempt) -> None:
    """Where the store cannot keep the count either, it is kept with the session's next change: the caller is told what
    failed first."""
    desk.metrics.attempts.labels(attempt.value).inc()
    try:
        await asyncio.shield(desk.registry.count(session, attempt))
    except StoreError as error:
        log.error("session %s: the attempt %s is not durable yet: %s", session.facts.id, attempt.value, error.message)


def _number(text: str | None) -> int:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,9}", text) else 0
