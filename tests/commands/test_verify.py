"""`stenograph verify` from its flags to its exit code.

The engine behind it is a toy: a token's logprob is a sum over the ids before it and the token itself. It speaks by that
sum, it scores by that sum, and the two know nothing of each other: no number can reach a score from the record.
"""

from __future__ import annotations

import asyncio
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from stenograph.cli import main
from stenograph.core import Sample
from stenograph.engine.given import Answer, GivenEngine
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.engine.scripted_server import ScriptedServer
from stenograph.gateway import Gateway
from tests.demo.acted import needs_model
from tests.engine.servers import listening

pytestmark = needs_model
TURNS = 2
REPLY = range(300, 308)


def odds(before: Sequence[int], id: int) -> float:
    """All that is before a token counts, in its order."""
    return -(zlib.crc32(np.array([*before, id], np.int32).tobytes()) % 4000) / 1000


class Toy:
    """Says the same ids each time, at the odds that they have where they stand."""

    version: str | None = None

    async def generate(self, prompt: list[int], sampling: dict[str, Any]) -> Answer:
        ids = list(REPLY)
        logprobs = [odds([*prompt, *ids[:place]], id) for place, id in enumerate(ids)]
        return {"token_ids": ids, "logprobs": logprobs, "finish_reason": "stop", "weight_version": self.version}


async def recorded(store: Path, *versions: str) -> list[Sample]:
    """A rollout under each version of the weights."""
    toy = Toy()
    engine = GivenEngine(toy, model="smollm2", max_model_len=4096, logprob_kind="raw")
    found: list[Sample] = []
    async with Gateway(engine=engine, tokenizer="smollm2", store=str(store)) as gateway:
        for version in versions or (None,):
            toy.version = version
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
    """vLLM, whose `prompt_logprobs` are the toy's."""

    def __init__(self, scored: Callable[[Sequence[int], int], float]) -> None:
        self._scored = scored
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
        rows = [{str(id): {"logprob": self._scored(prompt[:place], id)}} for place, id in enumerate(prompt)]
        choice = {"index": 0, "prompt_token_ids": prompt, "prompt_logprobs": [None, *rows[1:]]}
        return JSONResponse({"choices": [choice]})


async def verified(store: Path, *flags: str, scored: Callable[[Sequence[int], int], float] = odds) -> int:
    async with listening(Rescorer(scored).application) as url:
        return await asyncio.to_thread(main, ["verify", "--store", str(store), "--engine", f"vllm={url}", *flags])


async def test_what_was_recorded_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await recorded(tmp_path)
    assert await verified(tmp_path, "--tolerance", "1e-6") == 0
    said = capsys.readouterr().out
    assert "within 1e-06" in said
    assert f"{TURNS * len(REPLY)} " in said
    assert "differ most" not in said, "none differs"


async def test_a_difference_is_found_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (sample,) = await recorded(tmp_path)
    last = len(sample.tokens) - 1

    def scored(before: Sequence[int], id: int) -> float:
        return odds(before, id) - (4.0 if len(before) == last else 0.0)

    assert await verified(tmp_path, scored=scored) == 1
    said = capsys.readouterr().out
    assert "1 of 2 spans beyond 0.05" in said
    assert f"at {last} of {sample.id}" in said
    assert f"{odds(sample.tokens[:-1].tolist(), int(sample.tokens[-1])):9.4f}" in said
    assert await verified(tmp_path, "--tolerance", "5", scored=scored) == 0


def rewrite(store: Path, column: str, table: str, dtype: str, change: Callable[[Any], None]) -> None:
    """The record, falsified behind everybody's back: one array in each row."""
    with closing(sqlite3.connect(store / "stenograph.db")) as database, database:
        for row, cell in database.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            array = np.frombuffer(cell, dtype).copy()
            change(array)
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (array.tobytes(), row))


def quieter(logprobs: Any) -> None:
    logprobs -= 0.06


def other_first(ids: Any) -> None:
    ids[0] += 1


@pytest.mark.parametrize(
    ("column", "table", "dtype", "change"),
    [
        ("logprobs", "part", "<f4", quieter),
        ("ids", "part", "<i4", other_first),
        ("context", "call", "<i4", other_first),
    ],
    ids=["logprobs", "sampled", "context"],
)
async def test_a_record_that_is_not_true_is_found_out(
    tmp_path: Path, column: str, table: str, dtype: str, change: Callable[[Any], None]
) -> None:
    """Whether its logprobs are others, or they are of other tokens, or of tokens behind others."""
    await recorded(tmp_path)
    assert await verified(tmp_path) == 0
    rewrite(tmp_path, column, table, dtype, change)
    assert await verified(tmp_path) == 1


async def test_versions_are_never_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await recorded(tmp_path, "1", "2")
    assert await verified(tmp_path) == 1
    said = capsys.readouterr().out
    assert "nothing could be compared" in said
    assert "say it with --weights" in said
    assert await verified(tmp_path, "--weights", "2") == 0
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
