"""The fake behind HTTP: shaped like vLLM, in a process of its own, with a log of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from stenograph.engine.log import LoggedCall
from stenograph.engine.script import Fault, FaultKind, Script
from stenograph.engine.scripted import ScriptedEngine
from tests.engine.servers import serving
from tests.engine.streams import END, small_spec, small_tokenizer
from tests.engine.transcripts import transcript

SMALL = small_tokenizer()
IDS = {"return_token_ids": True, "logprobs": 2, "max_tokens": 50}


@asynccontextmanager
async def client(script: Script) -> AsyncIterator[tuple[aiohttp.ClientSession, ScriptedEngine]]:
    engine = ScriptedEngine(script, SMALL)
    async with serving(engine) as url, aiohttp.ClientSession(url) as session:
        yield session, engine


async def post(session: aiohttp.ClientSession, **body: Any) -> Any:
    async with session.post("/v1/completions", json={"prompt": [5, 6]} | body) as answer:
        return await answer.json()


async def events(session: aiohttp.ClientSession, **body: Any) -> list[Any]:
    async with session.post("/v1/completions", json={"prompt": [5, 6], "stream": True} | body) as answer:
        data = [line[6:] for line in (await answer.read()).splitlines() if line]
    assert data[-1] == b"[DONE]"
    return [json.loads(one) for one in data[:-1]]


def shape(value: Any) -> Any:
    """The keys, all the way down."""
    if isinstance(value, dict):
        return {("token_id" if key.startswith("token_id:") else key): shape(inner) for key, inner in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__


UNSPOKEN = {"text_offset", "system_fingerprint"}
"""What vLLM says and nobody here reads."""


def without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without(inner) for key, inner in value.items() if key not in UNSPOKEN}
    return [without(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("place", [0, 1, -1])
async def test_its_events_have_vllms_shape(place: int) -> None:
    real = [json.loads(line[6:]) for line in transcript("length").splitlines() if line.startswith(b"data: {")]
    body = IDS | {"logprobs": 0, "max_tokens": 4, "stream_options": {"include_usage": True}}
    async with client(Script(replies=((5, 6, 7, 8, 9),))) as (session, _):
        told = await events(session, **body)
    assert len(told) == len(real)
    assert shape(told[place]) == shape(without(real[place]))


async def test_the_whole_answer_is_the_sum_of_the_events() -> None:
    async with client(Script(chunk=2)) as (session, engine):
        body = IDS | {"n": 2, "seed": 4, "max_tokens": 500, "stop_token_ids": [SMALL.added[END]]}
        whole, parts = await post(session, **body), await events(session, **body)
    for choice in whole["choices"]:
        mine = [part["choices"][0] for part in parts if part["choices"][0]["index"] == choice["index"]]
        assert choice["token_ids"] == [id for one in mine for id in one["token_ids"]]
        assert choice["text"] == "".join(one["text"] for one in mine)
        assert choice["logprobs"]["token_logprobs"] == [x for one in mine for x in one["logprobs"]["token_logprobs"]]
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", SMALL.added[END])
        assert [one["prompt_token_ids"] for one in mine] == [[5, 6]] + [None] * (len(mine) - 1)
        assert choice["prompt_token_ids"] == [5, 6]
    assert engine.calls[0].choices == engine.calls[1].choices
    assert whole["usage"]["completion_tokens"] == sum(len(choice.ids) for choice in engine.calls[0].choices)


@pytest.mark.parametrize(("stop", "text"), [(["sea"], "she sells "), ("sea", "she sells "), (None, "she sells sea")])
async def test_text_is_trimmed_and_ids_are_not(stop: Any, text: str) -> None:
    async with client(Script(replies=("she sells sea",))) as (session, _):
        answer = await post(session, stop=stop, stop_token_ids=[SMALL.added[END]], **IDS)
    (choice,) = answer["choices"]
    assert choice["text"] == text
    assert SMALL.decode(choice["token_ids"]) == "she sells sea" + ("" if stop else END)


async def test_without_asking_there_are_no_ids() -> None:
    async with client(Script()) as (session, _):
        (choice,) = (await post(session))["choices"]
    assert (choice["token_ids"], choice["prompt_token_ids"], choice["logprobs"]) == (None, None, None)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"prompt": "text"}, 400, "validation error"),
        ({"prompt": [5, 99999]}, 400, "Token id 99999 is out of vocabulary"),
        ({"prompt": [5] * 40}, 400, "maximum context length is 40 tokens"),
        ({"temperature": "hot"}, 400, "validation error"),
        ({"model": "other"}, 404, "`other` does not exist"),
    ],
)
async def test_a_refusal_has_vllms_shape(body: dict[str, Any], status: int, words: str) -> None:
    async with client(Script(max_model_len=40)) as (session, _):
        error = (await post(session, **body))["error"]
    assert error["code"] == status
    assert words in error["message"]


async def test_a_call_that_is_not_streamed_is_aborted_too() -> None:
    hanging = Script(faults=(Fault(FaultKind.HANG, every=1),))
    async with asyncio.timeout(10), client(hanging) as (session, engine):
        answer = await session.post("/v1/completions", json={"prompt": [5]})
        answer.close()
    assert engine.calls[0].aborted


async def collect(answer: aiohttp.ClientResponse, pieces: list[bytes]) -> None:
    async for piece in answer.content.iter_any():
        pieces.append(piece)


@pytest.mark.parametrize(("kind", "whole"), [(FaultKind.CUT, True), (FaultKind.HALF_LINE, False)])
async def test_a_connection_is_cut_between_lines_or_within_one(kind: FaultKind, whole: bool) -> None:
    cut = Script(replies=((5, 6, 7, 8),), faults=(Fault(kind, every=1),))
    pieces: list[bytes] = []
    async with (
        client(cut) as (session, _),
        session.post("/v1/completions", json={"prompt": [5], "stream": True}) as told,
    ):
        with pytest.raises(aiohttp.ClientPayloadError):
            await collect(told, pieces)
    received = b"".join(pieces)
    assert received.count(b"data: {") == (2 if whole else 3)
    assert received.endswith(b"\n\n") is whole


async def test_the_small_routes() -> None:
    async with client(Script(model="policy", max_model_len=99)) as (session, _):
        async with session.get("/v1/models") as answer:
            (model,) = (await answer.json())["data"]
        async with session.get("/health") as health, session.get("/version") as version:
            assert (health.status, (await version.json()).keys()) == (200, {"version"})
    assert (model["id"], model["max_model_len"]) == ("policy", 99)


def launched(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "stenograph.engine.scripted_server", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def test_it_is_a_process_with_a_log_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(small_spec())
    (tmp_path / "script.toml").write_text('replies = ["the answer"]')
    log = tmp_path / "log.jsonl"
    files = ["--tokenizer", str(tmp_path), "--script", str(tmp_path / "script.toml"), "--log", str(log)]
    with launched("--port", "0", *files) as process:
        assert process.stdout
        url = process.stdout.readline().removeprefix("ready ").strip()
        async with aiohttp.ClientSession(url) as session:
            answer = await post(session, prompt=SMALL.encode("the question"), **IDS)
        (call,) = [msgspec.json.decode(line, type=LoggedCall) for line in log.read_bytes().splitlines()]
        process.terminate()
        _, errors = process.communicate(timeout=20)
    assert list(call.choices[0].ids) == answer["choices"][0]["token_ids"]
    assert SMALL.decode(call.prompt) == "the question"
    assert errors == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("--script", "none.toml"), "cannot read the script"), (("--tokenizer", "none"), "No such file")],
)
def test_what_it_cannot_use_it_says_in_a_line(arguments: tuple[str, ...], words: str) -> None:
    with launched(*arguments) as process:
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert words in errors.splitlines()[-1]
