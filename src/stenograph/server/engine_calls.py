"""What a trainer calls around a change of weights (CONTRACT 3): hold everything, let go, and say what is loaded now."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from stenograph.core import WeightsSaid
from stenograph.server.desk import Desk
from stenograph.server.session_calls import answer, body_of
from stenograph.wire import sessions
from stenograph.wire.info import Engines, EngineView


async def set_weights(desk: Desk, request: Request) -> Response:
    wanted = sessions.weights(await body_of(desk, request))
    desk.house.weights.say(wanted.version, wanted.step)
    await desk.house.store.commit([WeightsSaid(wanted.version, wanted.step)])
    return answer(wanted)


async def pause_engines(desk: Desk, request: Request) -> Response:
    """Answered once no engine samples any more."""
    await desk.house.engines.pause()
    return answer(Engines(engines=views(desk)))


async def resume_engines(desk: Desk, request: Request) -> Response:
    await desk.house.engines.resume()
    return answer(Engines(engines=views(desk)))


def views(desk: Desk) -> tuple[EngineView, ...]:
    return tuple(
        EngineView(
            name=member.info.name,
            kind=member.info.kind,
            model=member.info.model,
            up=member.up,
            paused=member.paused,
            in_flight=member.gate.running,
            waiting=member.gate.waiting,
            taken=member.taken,
        )
        for member in desk.house.engines.members
    )
