"""What Atropos' proxy answers beside its completions: who is there, a session's beginning and end, its nodes."""

from __future__ import annotations

import uuid

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from stenograph.config import MAX_BODY_BYTES
from stenograph.decision import decided
from stenograph.integrations.atropos import nodes, proxy_wire
from stenograph.integrations.atropos.engine import spelled
from stenograph.integrations.atropos.homes import one_of
from stenograph.integrations.atropos.proxy_desk import Held, ProxyDesk
from stenograph.integrations.atropos.speech import Speech
from stenograph.server.connection import bounded_body
from stenograph.server.session_calls import answer, body_of
from stenograph.wire import chat


async def health(desk: ProxyDesk, request: Request) -> Response:
    servers = desk.home.servers()
    healthy = sum(server.healthy for server in servers)
    return answer(
        proxy_wire.ProxyHealth(
            model=desk.home.model, sessions=len(desk.held), servers=len(servers), healthy_servers=healthy
        )
    )


async def models(desk: ProxyDesk, request: Request) -> Response:
    model = {"id": desk.home.model, "object": "model", "created": 0, "owned_by": "stenograph"}
    return answer({"object": "list", "data": [model]})


async def servers(desk: ProxyDesk, request: Request) -> Response:
    desk.home.check_admin(request.headers)
    listed = enumerate(desk.home.servers())
    return answer(
        proxy_wire.ServerList(
            [proxy_wire.ServerView(index=index, **msgspec.structs.asdict(server)) for index, server in listed]
        )
    )


async def setup(desk: ProxyDesk, request: Request) -> Response:
    """Atropos' manager tells a proxy its servers. Ours has its own, and says so where another is meant."""
    desk.home.check_admin(request.headers)
    known = desk.home.servers()
    for server in proxy_wire.setup(await _body(request)).servers:
        one_of(known, server.base_url)
    return answer(proxy_wire.SetupDone(servers=len(known), model_name=desk.home.model))


async def create(desk: ProxyDesk, request: Request) -> Response:
    desk.home.check_admin(request.headers)
    wanted = proxy_wire.create(await _body(request))
    place = await desk.home.place(wanted.base_url, wanted.tool_parser)
    session = place.gateway.session(str(uuid.uuid4()), metadata={"atropos": msgspec.to_builtins(wanted)})
    speech = Speech(session.turns, place.gateway.renderer.tokenizer)
    held = Held(place, session, speech, wanted)
    desk.held[session.id] = held
    return answer(
        proxy_wire.ProxySessionCreated(
            uuid=session.id,
            model_name=desk.home.model,
            tool_parser=wanted.tool_parser,
            base_url=place.base_url,
            created_at=held.live.facts.created_at,
            api_key=session.api_key,
        )
    )


async def listed(desk: ProxyDesk, request: Request) -> Response:
    desk.home.check_admin(request.headers)
    return answer(proxy_wire.ProxySessions([_view(held, desk.home.model) for held in desk.held.values()]))


def _view(held: Held, model: str) -> proxy_wire.ProxySession:
    facts, turns = held.live.facts, held.turns
    extended = set() if held.wanted.track_tree else {turn.call.parent for turn in turns} - {None}
    return proxy_wire.ProxySession(
        uuid=held.session.id,
        model_name=model,
        base_url=held.place.base_url,
        created_at=facts.created_at,
        last_accessed=facts.touched_at,
        num_nodes=len(turns) - len(extended),
    )


# --------------------------------------------------------------------------------------------------- one session


async def render(desk: ProxyDesk, request: Request) -> Response:
    held = _known(desk, request)
    house = held.desk.house
    body = held.asked(await body_of(held.desk, request), desk.home.model)
    ask = chat.decode(body, house.renderer.tokenizer.bytes_of).ask
    ids = decided(house, held.live, ask).prompt.tolist()
    return answer(proxy_wire.Rendered(spelled(house.renderer.tokenizer, ids), ids, len(ids)))


async def current_nodes(desk: ProxyDesk, request: Request) -> Response:
    held = _known(desk, request)
    turns, tokenizer = held.turns, held.place.gateway.renderer.tokenizer
    every = held.wanted.track_tree
    found = list(nodes.by_text(turns, tokenizer).values()) if every else nodes.in_list(turns, tokenizer)
    return answer({"nodes": [node.model_dump() for node in found]})


async def delete(desk: ProxyDesk, request: Request) -> Response:
    held = _known(desk, request)
    del desk.held[held.session.id]
    await (held.session.finish() if desk.home.keeps else held.session.delete())
    return answer(proxy_wire.ProxyDeleted(held.session.id))


def _known(desk: ProxyDesk, request: Request) -> Held:
    return desk.known(request.path_params["session"], request.headers)


async def _body(request: Request) -> bytes:
    return await bounded_body(request.receive, request.headers, MAX_BODY_BYTES)
