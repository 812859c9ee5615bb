"""What a start asks of a server, and what it says where there is none, or another."""

from __future__ import annotations

from typing import Any

import pytest

from stenograph.engine import http
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.engine.vllm import VllmEngine
from stenograph.errors import ConfigError, EngineError, EngineTimeout, EngineUnavailable
from tests.engine.servers import plain, saying, serving
from tests.engine.streams import ids, proven, request, small_tokenizer

SMALL = small_tokenizer()


@pytest.mark.parametrize("kind", ["raw", "temperature", "processed"])
async def test_start_finds_out_what_is_there(kind: Any) -> None:
    engine = ScriptedEngine(Script(model="policy", max_model_len=77, logprob_kind=kind), SMALL)
    async with serving(engine) as url:
        vllm = VllmEngine(url, name="vllm-3")
        info = await vllm.start()
        assert await vllm.healthy()
        await vllm.close()
    assert (info.name, info.kind, info.model, info.max_model_len) == ("vllm-3", "vllm", "policy", 77)
    assert info.logprob_kind == kind
    assert info.vocab_size is None
    assert not engine.calls, "a probe is no rollout's call"


async def test_start_again_after_the_server_was_away() -> None:
    engine = ScriptedEngine(Script(replies=((5,),)), SMALL)
    async with serving(engine) as url:
        vllm = VllmEngine(url)
        await vllm.start()
    assert not await vllm.healthy()
    with pytest.raises(EngineUnavailable):
        await vllm.start()
    async with serving(engine, port=int(url.rpartition(":")[2])):
        assert (await vllm.start()).model == "scripted"
        assert ids(await proven(vllm.generate(request()), request())) == [5]
        await vllm.close()


async def test_a_model_that_is_not_served_is_said_to_be() -> None:
    async with serving(ScriptedEngine(Script(model="policy"))) as url:
        vllm = VllmEngine(url, model="other")
        with pytest.raises(ConfigError, match=f"vllm-0 at {url} serves policy, not other"):
            await vllm.start()
        await vllm.close()


async def test_a_port_that_says_nothing_is_said_to_be_mute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ANSWER_SECONDS", 0.05)
    async with saying(b"", hold=True) as wire:
        vllm = VllmEngine(wire.url)
        with pytest.raises(EngineTimeout, match="says nothing to GET /v1/models"):
            await vllm.start()
        await vllm.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (plain("200 OK", b"<html>"), "does not list its models as vLLM does"),
        (plain("200 OK", b'{"data": [{"id": "m"}]}'), "does not say how long a context"),
        (plain("401 Unauthorized", b""), "HTTP 401"),
    ],
)
async def test_start_says_what_is_wrong(answer: bytes, words: str) -> None:
    async with saying(answer) as wire:
        vllm = VllmEngine(wire.url)
        with pytest.raises(EngineError, match=words):
            await vllm.start()
        await vllm.close()
