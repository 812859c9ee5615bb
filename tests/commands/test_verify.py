"""`stenograph verify` from its flags to its exit code, on an engine that scores as it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from stenograph.cli import main
from stenograph.core import Sample
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.engine.scripted_server import ScriptedServer
from stenograph.gateway import Gateway
from tests.demo.acted import needs_model
from tests.engine.servers import listening

pytestmark = needs_model
TURNS = 2


async def recorded(store: Path, *versions: str) -> list[Sample]:
    """A rollout under each version of the weights."""
    engine = ScriptedEngine(Script(model="smollm2", replies=(tuple(range(300, 320)),)))
    found: list[Sample] = []
    async with Gateway(engine=engine, tokenizer="smollm2", store=str(store)) as gateway:
        for version in versions or (None,):
            engine.weight_version = version
            session = gateway.session()
            client = session.openai()
            messages = []
            for place in range(TURNS):
                messages.append({"role": "user", "content": f"question {place} of {version}"})
                answer = await client.chat.completions.create(model="m", messages=messages, max_tokens=8)  # type: ignore[arg-type]
                messages.append({"role": "assistant", "content": answer.choices[0].message.content or ""})
            found += session.samples()
    return found


class Rescorer:
    """vLLM, whose `prompt_logprobs` are those that were recorded, or others."""

    def __init__(self, samples: list[Sample], told: Callable[[int, float], float]) -> None:
        self._samples = samples
        self._told = told
        self._server = ScriptedServer(ScriptedEngine(Script(model="smollm2", vocab_size=49152)))
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
        prompt = body["prompt"]
        sample = next(one for one in self._samples if np.array_equal(one.tokens, prompt))
        rows = [
            {str(id): {"logprob": self._told(place, float(logprob))}}
            for place, (id, logprob) in enumerate(zip(prompt, sample.logprobs, strict=True))
        ]
        choice = {"index": 0, "prompt_token_ids": prompt, "prompt_logprobs": [None, *rows[1:]]}
        return JSONResponse({"choices": [choice]})


async def verified(store: Path, samples: list[Sample], told: Callable[[int, float], float], *flags: str) -> int:
    async with listening(Rescorer(samples, told).application) as url:
        return await asyncio.to_thread(main, ["verify", "--store", str(store), "--engine", f"vllm={url}", *flags])


async def test_what_was_recorded_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = await recorded(tmp_path)
    assert await verified(tmp_path, samples, lambda _, logprob: logprob) == 0
    said = capsys.readouterr().out
    assert "within 0.05" in said
    assert f"{TURNS} " in said


async def test_a_difference_is_found_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = await recorded(tmp_path)
    last = len(samples[0].tokens) - 1

    def told(place: int, logprob: float) -> float:
        return logprob - 4.0 if place == last else logprob

    assert await verified(tmp_path, samples, told) == 1
    said = capsys.readouterr().out
    assert "1 of 2 spans beyond 0.05" in said
    assert f"at {last} of {samples[0].id}" in said
    assert await verified(tmp_path, samples, told, "--tolerance", "5") == 0


async def test_versions_are_never_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = await recorded(tmp_path, "1", "2")
    assert await verified(tmp_path, samples, lambda _, logprob: logprob) == 1
    said = capsys.readouterr().out
    assert "nothing could be compared" in said
    assert "say it with --weights" in said
    assert await verified(tmp_path, samples, lambda _, logprob: logprob, "--weights", "2") == 0
    said = capsys.readouterr().out
    assert "2 spans: sampled under weights 1, and the engine has 2" in said


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("scripted=", "it cannot score"),
        ("vllm=http://127.0.0.1:9", "does not answer"),
        ("nothing=x", "expected KIND=WHERE"),
    ],
)
async def test_what_cannot_score_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str, words: str
) -> None:
    await recorded(tmp_path)
    arguments = ["verify", "--store", str(tmp_path), "--engine", engine]
    assert await asyncio.to_thread(main, arguments) == 2
    assert words in capsys.readouterr().err


async def test_an_empty_store_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with Gateway(engine=ScriptedEngine(), tokenizer="smollm2", store=str(tmp_path)) as gateway:
        gateway.session()
    arguments = ["verify", "--store", str(tmp_path), "--engine", "vllm=http://127.0.0.1:9"]
    assert await asyncio.to_thread(main, arguments) == 2
    assert "nothing was sampled" in capsys.readouterr().err
