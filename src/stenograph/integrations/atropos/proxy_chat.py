"""A completion through Atropos' proxy is the gateway's own, by the same application: only its defaults are others."""

from __future__ import annotations

from openai.types.chat import ChatCompletion
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stenograph.errors import StenographError
from stenograph.integrations.atropos.proxy_desk import Held, ProxyDesk
from stenograph.server.connection import Connection, Gone
from stenograph.server.session_calls import refusal

OK = 200
ROUTED = ("app", "router", "endpoint", "path_params")
"""What our own routing has put into a scope."""


class ChatCall:
    """The ASGI application of its one route. A caller that goes away, or asks again, is the gateway's to deal with."""

    def __init__(self, desk: ProxyDesk) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = Connection(scope, receive, send)
        try:
            held = self._desk.known(scope["path_params"]["session"], connection.headers)
            raw = await connection.body(held.desk.settings.max_body_bytes)
            body = held.asked(raw, self._desk.home.model)
        except Gone:
            return
        except StenographError as error:
            await refusal(error)(scope, receive, send)
            return
        said = await _asked(held.place.gateway.app, _inward(scope, held, len(body)), body, receive)
        if said:
            status, headers, told = _whole(said)
            await connection.answer(status, headers, _as_there(held, told) if status == OK else told)


def _inward(scope: Scope, held: Held, length: int) -> Scope:
    path = f"/s/{held.session.id}/v1/chat/completions"
    own = (b"content-length", b"transfer-encoding", b"content-encoding")
    headers = [(name, value) for name, value in scope["headers"] if name not in own]
    outer = {name: value for name, value in scope.items() if name not in ROUTED}
    where = {"path": path, "raw_path": path.encode(), "root_path": "", "query_string": b""}
    return {**outer, **where, "headers": [*headers, (b"content-length", str(length).encode())]}


async def _asked(app: ASGIApp, scope: Scope, body: bytes, receive: Receive) -> list[Message]:
    """All that it answers. None: the caller is gone, and heard as such by the application itself."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def next_message() -> Message:
        return first.pop() if first else await receive()

    async def keep(message: Message) -> None:
        sent.append(message)

    await app(scope, next_message, keep)
    return sent


def _whole(said: list[Message]) -> tuple[int, dict[str, str], bytes]:
    start, *rest = said
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    return start["status"], headers, b"".join(message.get("body", b"") for message in rest)


def _as_there(held: Held, told: bytes) -> bytes:
    """Reasoning and answer are one text: environments read `<think>` in the content, and score it."""
    spoken = held.speech.as_there(ChatCompletion.model_validate_json(told))
    return spoken.model_dump_json(exclude_unset=True).encode()
