"""Upstream's reply has `token_ids: {prompt_token_ids, completion_token_ids}` at its top: so has ours, beside vLLM's.

An application around the application: what the agent asks for is asked with `return_token_ids`, and a JSON answer gets
the field. A stream has the ids on its chunks.
"""

from __future__ import annotations

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stenograph.core import JSON

CHAT = "/chat/completions"


class WithTokenIds:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].endswith(CHAT):
            await self._app(scope, receive, send)
            return

        async def asked() -> Message:
            message = await receive()
            return {**message, "body": asking(message["body"])} if message.get("body") else message

        await self._app(scope, asked, _Reply(send).send)


def asking(body: bytes) -> bytes:
    """A body in one piece, as a client in this process sends it. What is no JSON object is refused behind this."""
    try:
        fields = msgspec.json.decode(body)
    except ValueError:
        return body
    return msgspec.json.encode({**fields, "return_token_ids": True}) if isinstance(fields, dict) else body


def told(answer: dict[str, JSON]) -> dict[str, JSON]:
    ids = {
        "prompt_token_ids": answer["prompt_token_ids"],
        "completion_token_ids": answer["choices"][0]["token_ids"],
    }
    return {**answer, "token_ids": ids}


class _Reply:
    """Holds the head of a JSON answer back until its body is known."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _whole(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._finish(self._start)

    async def _finish(self, start: Message) -> None:
        body = msgspec.json.encode(told(msgspec.json.decode(self._body)))
        kept = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        await self._send({**start, "headers": [*kept, (b"content-length", str(len(body)).encode())]})
        await self._send({"type": "http.response.body", "body": body})


def _whole(start: Message) -> bool:
    kind: bytes = dict(start["headers"])[b"content-type"]
    return start["status"] == 200 and kind.startswith(b"application/json")
