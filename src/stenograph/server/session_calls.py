"""What a rollout worker calls (CONTRACT 3): open, look, reward, finish. Answers leave when their change is durable."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from stenograph.core import JSON, SessionFacts, SessionSampling, State
from stenograph.errors import StenographError
from stenograph.export.summary import session_summary, turn_summary
from stenograph.live import LiveSession
from stenograph.server.connection import bounded_body, error_headers
from stenograph.server.desk import Desk
from stenograph.server.model_call import JSON_TYPE
from stenograph.server.registry import new_key
from stenograph.session.lifecycle import rewarded
from stenograph.wire import body, sessions
from stenograph.wire.errors import ErrorAnswer, written
from stenograph.wire.sampling import given

_ENCODER = msgspec.json.Encoder(enc_hook=lambda array: array.tolist())


def answer(value: Any, status: int = 200) -> Response:
    return Response(_ENCODER.encode(value), status, media_type="application/json")


def refusal(error: StenographError, shape: type = ErrorAnswer) -> Response:
    return Response(written(error, shape), error.status, {**JSON_TYPE, **error_headers(error)})


async def body_of(desk: Desk, request: Request) -> bytes:
    return await bounded_body(request.receive, request.headers, desk.settings.max_body_bytes)


async def create_session(desk: Desk, request: Request) -> Response:
    wanted = sessions.create(await body_of(desk, request))
    key = new_key()
    session, durable = desk.registry.open(opened(desk, wanted, key))
    await durable
    return answer(doors(session.facts.id, str(request.base_url).rstrip("/"), key), 201)


def opened(desk: Desk, wanted: sessions.CreateSession, key: str) -> SessionFacts:
    sampling = SessionSampling(_json(given(wanted.sampling.defaults)), _json(given(wanted.sampling.force)))
    return msgspec.structs.replace(
        desk.facts(wanted.id, key),
        group=wanted.group,
        group_size=wanted.group_size,
        role=wanted.role,
        history=wanted.history,
        reasoning=wanted.reasoning,
        sampling=sampling,
        budget=msgspec.convert(msgspec.to_builtins(wanted.budget), type(desk.facts().budget)),
        ttl=wanted.ttl,
        metadata=wanted.metadata,
    )


def doors(id: str, root: str, key: str) -> sessions.SessionOpened:
    return sessions.SessionOpened(id, f"{root}/s/{id}/v1", f"{root}/s/{id}", key)


def _json(values: dict[str, Any]) -> dict[str, JSON]:
    plain: dict[str, JSON] = msgspec.json.decode(msgspec.json.encode(values))
    return plain


async def list_sessions(desk: Desk, request: Request) -> Response:
    wanted = body.query(request.query_params, sessions.SessionFilter)
    found = [
        facts.id
        for facts in desk.registry.all_facts()
        if (wanted.group is None or facts.group == wanted.group)
        and (wanted.state is None or facts.state is wanted.state)
        and (wanted.since is None or facts.touched_at >= wanted.since)
    ]
    views = [_summary(desk.registry.must(id)) for id in found[: wanted.limit]]
    return answer({"sessions": views})


async def get_session(desk: Desk, request: Request) -> Response:
    return answer(_summary(_named(desk, request)))


def _summary(session: LiveSession) -> JSON:
    return session_summary(session.facts, list(session.tree.turns.values()))


async def reward_session(desk: Desk, request: Request) -> Response:
    wanted, session = sessions.reward(await body_of(desk, request)), _named(desk, request)
    facts = rewarded(
        session.facts,
        wanted.reward,
        turn_id=wanted.turn_id,
        scores=wanted.scores,
        metadata=wanted.metadata,
        known_turns=session.tree.turns,
    )
    await desk.registry.change(session, facts)
    return answer(_summary(session))


async def finish_session(desk: Desk, request: Request) -> Response:
    wanted, session = sessions.finish(await body_of(desk, request)), _named(desk, request)
    await desk.registry.end(session, State(wanted.status), wanted.error)
    return answer(_summary(session))


async def finish_group(desk: Desk, request: Request) -> Response:
    wanted, group = sessions.finish(await body_of(desk, request)), request.path_params["group"]
    members = [desk.registry.must(facts.id) for facts in desk.registry.all_facts() if facts.group == group]
    still_open = [session for session in members if session.facts.state is State.OPEN]
    for task in [desk.registry.end(session, State(wanted.status), wanted.error) for session in still_open]:
        await task
    return answer({"sessions": [_summary(session) for session in members]})


async def session_samples(desk: Desk, request: Request) -> Response:
    wanted, session = body.query(request.query_params, sessions.SamplesQuery), _named(desk, request)
    found = await desk.samples(session, wanted.shared, wanted.teacher)
    return answer(sessions.SampleList(tuple(found)))


async def session_tree(desk: Desk, request: Request) -> Response:
    session = _named(desk, request)
    return answer({"turns": [turn_summary(session.facts, turn) for turn in session.tree.turns.values()]})


async def delete_session(desk: Desk, request: Request) -> Response:
    await desk.registry.delete(_named(desk, request))
    return Response(status_code=204)


def _named(desk: Desk, request: Request) -> LiveSession:
    return desk.registry.must(request.path_params["id"])
