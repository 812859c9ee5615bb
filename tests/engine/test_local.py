"""The embedded engine around llama.cpp, which is played by its own bytes here. With the real one: tests/live."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from stenograph.core import Delta, Finish, Request
from stenograph.engine import llama_process, local
from stenograph.engine.llama_settings import Settings
from stenograph.engine.local import LocalEngine
from stenograph.errors import (
    CallerError,
    ConfigError,
    ContextLengthExceeded,
    EngineError,
    EngineUnavailable,
    EvidenceError,
    StenographError,
)
from tests.engine.servers import LAST_CHUNK, Wire, chunked, plain, saying
from tests.engine.streams import finish, ids, logprobs, request, small_spec, small_tokenizer
from tests.engine.test_llamacpp import PROMPT, transcript
from tests.gguf_files import model

SAMPLED = [416, 722, 260, 2179, 3391, 80, 4814, 288]
"""In the transcript `length`."""
STOP = small_tokenizer().decode([260])
"""The third of them."""
CONTEXT = 512
"""What the model was trained for."""


class Process:
    """llama.cpp's, as far as the engine sees it."""

    def __init__(self) -> None:
        self.running = True

    async def close(self) -> None:
        self.running = False


class Stage:
    """A model file, and bytes in the place of llama.cpp."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "model.gguf"
        self.file.write_bytes(model(small_spec(), "gpt-2", **{"ggml.eos_token_id": 2}))
        self.log = folder / "log.jsonl"
        self.engine = LocalEngine(str(self.file), small_tokenizer(), model="small", log=self.log)
        self.process = Process()
        self.url = ""
        self.muted = b""
        """The file that llama.cpp was to load."""

    async def launch(self, settings: Settings, called: str) -> tuple[Process, str]:
        assert called == str(self.file)
        assert settings.context == CONTEXT
        self.muted = await asyncio.to_thread(Path(settings.model).read_bytes)
        return self.process, self.url

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    stage = Stage(tmp_path)
    monkeypatch.setattr(local, "launch", stage.launch)
    yield stage
    await stage.engine.close()


@asynccontextmanager
async def answering(stage: Stage, answer: bytes, *, hold: bool = False) -> AsyncIterator[Wire]:
    """The engine is started, and each of its calls is answered so."""
    async with saying(chunked(transcript("probe")) + LAST_CHUNK) as wire:
        stage.url = wire.url
        await stage.engine.start()
    async with saying(answer, hold=hold) as wire:
        assert stage.engine._server
        stage.engine._server.http.root = wire.url
        yield wire
        await stage.engine.close()


async def said(engine: LocalEngine, asked: Request) -> list[Delta]:
    return [delta async for delta in engine.generate(asked)]


def whole(name: str) -> bytes:
    return chunked(transcript(name)) + LAST_CHUNK


async def test_it_says_what_it_is(stage: Stage) -> None:
    async with saying(whole("probe")) as wire:
        stage.url = wire.url
        info = await stage.engine.start()
        await stage.engine.close()
    assert (info.name, info.kind, info.model, info.logprob_kind) == ("local-0", "local", "small", "raw")
    assert info.max_model_len == CONTEXT
    assert info.vocab_size == small_tokenizer().vocab_size
    assert stage.logged() == []


async def test_llamacpp_loads_a_model_without_text_and_nothing_of_it_stays(stage: Stage) -> None:
    async with answering(stage, b""):
        assert len(stage.muted) == stage.file.stat().st_size
        assert stage.muted != stage.file.read_bytes()


async def test_a_reply_is_what_was_sampled(stage: Stage) -> None:
    async with answering(stage, whole("length")) as wire:
        deltas = await said(stage.engine, request(PROMPT))
    assert (ids(deltas), finish(deltas)) == (SAMPLED, Finish("length"))
    assert json.loads(wire.requests[0].split(b"\r\n\r\n", 1)[1])["prompt"] == list(PROMPT)


async def test_its_log_has_what_was_sampled_before_the_reply_is_over(stage: Stage) -> None:
    async with answering(stage, whole("length")), aclosing(stage.engine.generate(request(PROMPT, n=2))) as deltas:
        heard: list[Delta] = []
        while sum(delta.finish is not None for delta in heard) < 2:
            heard.append(await anext(deltas))
        [call] = stage.logged()
    assert not call["aborted"]
    for choice in (0, 1):
        assert call["choices"][choice]["ids"] == ids(heard, choice)
        assert call["choices"][choice]["logprobs"] == pytest.approx(logprobs(heard, choice))
        assert call["choices"][choice]["finish_reason"] == "length"


@pytest.mark.parametrize(("asked", "reason"), [({"stop_token_ids": (260,)}, 260), ({"stop": (STOP,)}, STOP)])
async def test_what_ends_a_reply_is_its_last_token_and_ends_the_generation(
    asked: dict[str, Any], reason: int | str, stage: Stage
) -> None:
    async with answering(stage, chunked(transcript("length")), hold=True) as wire:
        deltas = await said(stage.engine, request(PROMPT, **asked))
        await wire.gone.wait()
    assert (ids(deltas), finish(deltas)) == (SAMPLED[:3], Finish("stop", reason))
    assert stage.logged()[0]["choices"][0]["ids"] == SAMPLED[:3]


async def test_a_caller_that_goes_away_ends_the_generation(stage: Stage) -> None:
    first = transcript("length").split(b"\n\n")[0] + b"\n\n"
    async with answering(stage, chunked(first), hold=True) as wire:
        deltas = stage.engine.generate(request(PROMPT))
        assert ids([await anext(deltas)]) == SAMPLED[:1]
        await deltas.aclose()
        await wire.gone.wait()
    [call] = stage.logged()
    assert call["aborted"]
    assert call["choices"] == [
        {"ids": SAMPLED[:1], "logprobs": call["choices"][0]["logprobs"], "finish_reason": None, "stop_reason": None}
    ]


def refused(code: int, message: str) -> bytes:
    body = json.dumps({"error": {"code": code, "message": message, "type": "x"}}).encode()
    return plain(f"{code} No", body)


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (whole("gap"), EvidenceError, "read 49 tokens of a prompt of 3"),
        (chunked(transcript("length").rsplit(b"data:", 1)[0]) + LAST_CHUNK, EngineError, "ended its answer without"),
        (chunked(transcript("length")[:1500]), EngineError, "broke off"),
        (chunked(b'data: {"error": {"code": 500, "message": "Compute error."}}\n\n'), EngineError, "Compute error"),
        (refused(400, "no such thing"), CallerError, "no such thing"),
        (refused(500, "oh"), EngineError, "HTTP 500: oh"),
        (refused(503, "Loading model"), EngineUnavailable, "Loading model"),
    ],
)
async def test_what_goes_wrong_is_said(answer: bytes, error: type[StenographError], words: str, stage: Stage) -> None:
    async with answering(stage, answer):
        with pytest.raises(error, match=words) as caught:
            await said(stage.engine, request(PROMPT))
    assert type(caught.value) is error
    [call] = stage.logged()
    assert not call["aborted"]


async def test_a_prompt_that_does_not_fit_never_leaves(stage: Stage) -> None:
    async with answering(stage, whole("length")) as wire:
        with pytest.raises(ContextLengthExceeded, match=r"context length is 512 tokens\. Your prompt has 512 tokens"):
            await said(stage.engine, request(range(CONTEXT)))
        assert wire.requests == []


async def test_a_bias_on_a_foreign_token_is_refused(stage: Stage) -> None:
    """llama.cpp would drop it without a word."""
    async with answering(stage, whole("length")):
        with pytest.raises(CallerError, match="outside the vocabulary") as caught:
            await said(stage.engine, request(PROMPT, logit_bias={10**6: 1.0}))
    assert caught.value.param == "logit_bias"


async def test_it_is_healthy_while_its_process_runs(stage: Stage) -> None:
    assert not await stage.engine.healthy()
    async with answering(stage, plain("200 OK", b"{}")):
        assert await stage.engine.healthy()
        stage.process.running = False
        assert not await stage.engine.healthy()


async def test_what_is_not_running_is_unavailable(stage: Stage) -> None:
    with pytest.raises(EngineUnavailable, match="not running"):
        await said(stage.engine, request(PROMPT))


async def test_closing_it_ends_its_process(stage: Stage) -> None:
    async with answering(stage, b""):
        assert stage.process.running
    assert not stage.process.running


async def test_an_engine_whose_probe_fails_leaves_no_process(stage: Stage) -> None:
    async with saying(refused(500, "oh")) as wire:
        stage.url = wire.url
        with pytest.raises(EngineError, match="oh"):
            await stage.engine.start()
    assert not stage.process.running


async def test_a_missing_or_damaged_model_is_said_in_one_line(stage: Stage) -> None:
    stage.file.write_bytes(stage.file.read_bytes()[:2000])
    with pytest.raises(ConfigError, match="truncated"):
        await stage.engine.start()
    stage.file.unlink()
    with pytest.raises(ConfigError, match="No such file"):
        await stage.engine.start()


async def test_without_llamacpp_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_process, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'stenograph\[local\]'"):
        await llama_process.launch(Settings("m", "k", 1, 1, 512), called="m")


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (4, 3), (64, 8), (None, 1)])
def test_a_core_is_left_to_the_rest_of_us(cores: int | None, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert local._threads() == threads
