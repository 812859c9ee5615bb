"""What a gateway says of itself: health, metrics, models, its own description."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from stenograph.errors import EngineUnavailable
from stenograph.server.desk import Desk
from stenograph.server.engine_calls import views
from stenograph.server.session_calls import answer
from stenograph.wire.info import Health, Model, Models


async def health(desk: Desk, request: Request) -> Response:
    if not await desk.house.engines.healthy():
        names = ", ".join(f"{member.info.name} ({member.info.kind})" for member in desk.house.engines.members)
        raise EngineUnavailable(f"no engine answers: {names}")
    return answer(Health(status="ok", model=desk.house.info.model, engines=views(desk)))


async def metrics(desk: Desk, request: Request) -> Response:
    desk.metrics.open_sessions.set(desk.registry.open_sessions)
    desk.metrics.batches_waiting.set(desk.deliveries.waiting)
    desk.metrics.engines(views(desk))
    return Response(desk.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def models(desk: Desk, request: Request) -> Response:
    length = desk.house.info.max_model_len
    return answer(Models(data=tuple(Model(id=name, max_model_len=length) for name in desk.models)))


async def model(desk: Desk, request: Request) -> Response:
    name = request.path_params["model"]
    desk.check_model(name, under_session="session" in request.path_params)
    return answer(Model(id=name, max_model_len=desk.house.info.max_model_len))


async def root(desk: Desk, request: Request) -> Response:
    """Agents knock here before they begin."""
    return answer(Health(status="ok", model=desk.models[0], engines=views(desk)))
