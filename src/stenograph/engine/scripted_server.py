"""The scripted engine behind vLLM's HTTP: `python -m stenograph.engine.scripted_server --script FILE --log FILE`.

With `--scale-out` it also offers what a vLLM does that trains: `/inference/v1/generate`, and to be paused.

A process of its own, so that its log is nobody's word but its own, and so that it can be killed.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TypeAlias

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from stenograph.core import Request
from stenograph.engine import scripted_generate, scripted_wire
from stenograph.engine.script import Script, load
from stenograph.engine.scripted import Scene, ScriptedEngine, Severed
from stenograph.engine.scripted_wire import error_body, models_body
from stenograph.engine.vllm_generate import NEVER_NAMED
from stenograph.errors import ConfigError, EngineError, NotFound, StenographError
from stenograph.render.tokenizer import Tokenizer
from stenograph.wire import sse

HOST = "127.0.0.1"
VERSION = "0.32.0"
"""Of the vLLM whose answers these are shaped after."""


AnyBody: TypeAlias = scripted_wire.Body | scripted_generate.Body
AnyAnswer: TypeAlias = scripted_wire.Answer | scripted_generate.Answer


class _NewVersion(msgspec.Struct):
    new_version: str


class ScriptedServer:
    """The routes. `application` is ASGI."""

    def __init__(self, engine: ScriptedEngine, *, scale_out: bool = False) -> None:
        self._engine = engine
        for_trainers = [
            Route("/inference/v1/generate", self._generate, methods=["POST"]),
            Route("/pause", self._pause, methods=["POST"]),
            Route("/resume", self._resume, methods=["POST"]),
            Route("/is_paused", self._is_paused),
            Route("/update_weight_version", self._update_weight_version, methods=["POST"]),
        ]
        self.application = Starlette(
            routes=[
                Route("/health", self._health),
                Route("/version", self._version),
                Route("/v1/models", self._models),
                Route("/v1/completions", self._completions, methods=["POST"]),
                *(for_trainers if scale_out else ()),
            ]
        )

    async def _health(self, http: HttpRequest) -> Response:
        return Response()

    async def _version(self, http: HttpRequest) -> Response:
        return _json(b'{"version":"%s"}' % VERSION.encode())

    async def _models(self, http: HttpRequest) -> Response:
        return _json(models_body(self._engine.script.model, self._engine.script.max_model_len))

    async def _completions(self, http: HttpRequest) -> Response:
        try:
            body, request = scripted_wire.parse(await http.body(), self._engine.vocab_size)
            answer = scripted_wire.Answer(body, self._engine.script.model)
            return self._answered(self._admitted(body.model, request), body, answer)
        except StenographError as error:
            return _error(error)

    async def _generate(self, http: HttpRequest) -> Response:
        try:
            body, request = scripted_generate.parse(await http.body(), self._engine.vocab_size)
            answer = scripted_generate.Answer(body, request, self._held, beside=self._engine.script.beside)
            return self._answered(self._admitted(body.model, request), body, answer)
        except StenographError as error:
            return _error(error)

    def _held(self) -> str:
        """The version of the weights."""
        return self._engine.weight_version or NEVER_NAMED

    async def _pause(self, http: HttpRequest) -> Response:
        """As with `mode=keep`: what is under way is frozen."""
        self._engine.gate.clear()
        return _json(b'{"status":"paused"}')

    async def _resume(self, http: HttpRequest) -> Response:
        self._engine.gate.set()
        return _json(b'{"status":"resumed"}')

    async def _is_paused(self, http: HttpRequest) -> Response:
        return _json(msgspec.json.encode({"is_paused": not self._engine.gate.is_set()}))

    async def _update_weight_version(self, http: HttpRequest) -> Response:
        self._engine.weight_version = msgspec.json.decode(await http.body(), type=_NewVersion).new_version
        return _json(b'{"success":true}')

    def _admitted(self, model: str | None, request: Request) -> Scene:
        if model not in (None, self._engine.script.model):
            raise NotFound(f"The model `{model}` does not exist.", param="model")
        return self._engine.admit(request)

    def _answered(self, scene: Scene, body: AnyBody, answer: AnyAnswer) -> Response:
        if body.stream:
            return StreamingResponse(self._events(scene, body, answer), media_type="text/event-stream")
        return StreamingResponse(self._whole(scene, answer), media_type="application/json")

    async def _whole(self, scene: Scene, answer: AnyAnswer) -> AsyncGenerator[bytes, None]:
        """In one piece, but as a stream: starlette listens for a disconnect only there. Any failure cuts it."""
        async with aclosing(self._engine.play(scene)) as raws:
            yield answer.whole([raw async for raw in raws])

    async def _events(self, scene: Scene, body: AnyBody, answer: AnyAnswer) -> AsyncGenerator[bytes, None]:
        """A disconnect cancels this where it waits, which closes `play`: the generation is aborted, and logged so."""
        chunk = b""
        try:
            async with aclosing(self._engine.play(scene)) as raws:
                async for raw in raws:
                    chunk = sse.data(answer.chunk(raw))
                    yield chunk
            if body.stream_options.include_usage:
                yield sse.data(answer.usage())
        except Severed as severed:
            if severed.mid_line:
                yield chunk[: len(chunk) // 2]
            raise
        except EngineError as error:
            yield sse.data(error_body(error, 500))
        yield sse.DONE


def _error(error: StenographError) -> Response:
    status = error.status if error.status in (400, 404, 503) else 500
    return _json(error_body(error, status), status)


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m stenograph.engine.scripted_server")
    parser.add_argument("--port", type=int, default=0, help="0, the default: a free one")
    parser.add_argument("--tokenizer", type=Path, help="a folder with a tokenizer.json; without: random ids")
    parser.add_argument("--script", type=Path, help="TOML or JSON; without: random replies")
    parser.add_argument("--scale-out", action="store_true", help="offer /inference/v1/generate, /pause and /resume too")
    parser.add_argument("--log", type=Path, help="where every call is appended, one JSON object a line")
    options = parser.parse_args(arguments)
    try:
        engine = ScriptedEngine(
            load(options.script) if options.script else Script(),
            Tokenizer((options.tokenizer / "tokenizer.json").read_text()) if options.tokenizer else None,
            log=options.log,
        )
        listener = socket.create_server((HOST, options.port))
    except (ConfigError, OSError) as error:
        parser.error(str(error))
    serve(ScriptedServer(engine, scale_out=options.scale_out), listener)


def serve(server: ScriptedServer, listener: socket.socket) -> None:
    """Connections wait in the listener's queue from the line on that says so, until the loop takes them up."""
    config = uvicorn.Config(server.application, log_level="critical", timeout_graceful_shutdown=1)
    print(f"ready http://{HOST}:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1:])
