"""The toy behind vLLM's HTTP, and a store of rollouts for it to score."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from stenograph.core import JSON, Sample
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.engine.scripted_server import ScriptedServer
from stenograph.gateway import Gateway, Session
from tests.engine.servers import listening
from tests.teacher.toy import likeliest, odds

VOCABULARY = 49152
"""SmolLM2's."""


class ToyServer:
    """`served`: the model that it says it has, which names the tokenizer of this teacher."""

    def __init__(self, served: str = "smollm2") -> None:
        self.prompts: list[list[int]] = []
        """All that it was asked to score, and did."""
        self.refuses: Callable[[list[int]], bool] = lambda prompt: False
        self.stops_at: int | None = None
        """After so many it answers no more."""
        self.stopped = asyncio.Event()
        self.goes_on = asyncio.Event()
        script = Script(model=served, vocab_size=VOCABULARY, max_model_len=4096)
        self._server = ScriptedServer(ScriptedEngine(script))
        self.application = Starlette(
            routes=[
                Route("/v1/completions", self._completions, methods=["POST"]),
                Mount("/", self._server.application),
            ]
        )

    async def _completions(self, http: HttpRequest) -> Response:
        body = await http.json()
        if "prompt_logprobs" not in body:
            return await self._server._completions(http)
        prompt, top_k = body["prompt"], body["prompt_logprobs"]
        if len(self.prompts) == self.stops_at:
            self.stopped.set()
            await self.goes_on.wait()
            return Response(status_code=503)
        if self.refuses(prompt):
            refusal = {"message": "not this one", "type": "BadRequestError", "param": None, "code": 400}
            return JSONResponse({"error": refusal}, 400)
        self.prompts.append(prompt)
        rows = [_row(prompt[:place], id, top_k) for place, id in enumerate(prompt)]
        choice = {"index": 0, "prompt_token_ids": prompt, "prompt_logprobs": [None, *rows[1:]]}
        return JSONResponse({"choices": [choice]})


def _row(before: list[int], id: int, top_k: int) -> dict[str, Any]:
    told = dict(likeliest(before, top_k)) | {id: odds(before, id)}
    return {str(one): {"logprob": logprob} for one, logprob in told.items()}


@asynccontextmanager
async def serving(served: str = "smollm2") -> AsyncIterator[tuple[ToyServer, str]]:
    server = ToyServer(served)
    async with listening(server.application) as url:
        yield server, url


async def rollout(session: Session, turns: int = 2) -> list[Sample]:
    """Some turns, and a second answer to the last of them: two branches."""
    client = session.openai()
    messages: list[JSON] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"question {turn} of {session.id}"})
        n = 2 if turn == turns - 1 else 1
        answer = await client.chat.completions.create(model="m", messages=messages, n=n, max_tokens=12)
        messages.append({"role": "assistant", "content": answer.choices[0].message.content or ""})
    session.reward(1.0)
    return session.samples()


async def recorded(store: Path, sessions: int = 2, **fields: Any) -> list[Sample]:
    async with Gateway(engine="scripted=", store=str(store)) as gateway:
        return [
            sample
            for place in range(sessions)
            for sample in await rollout(gateway.session(f"s{place}", group="g", group_size=sessions, **fields))
        ]
