"""The routes without messages, over the whole HTTP path: what only a running gateway can show."""

from __future__ import annotations

from collections.abc import AsyncIterator

import openai
import pytest
from openai.types import Completion

from stenograph.clients import InProcess
from stenograph.engine.script import FaultKind, Script
from stenograph.gateway import HERE
from stenograph.store.memory import MemoryStore
from tests.stage import models
from tests.stage.models import Model
from tests.stage.stage import Stage

GENERATE = "/inference/v1/generate"


@pytest.fixture(scope="module")
def model() -> Model:
    return models.model(models.ALWAYS)


async def test_weights_are_told_as_spans(model: Model) -> None:
    async with Stage(model, MemoryStore(), Script(weight_version="v7")) as stage:
        told = await stage.tell(f"/s/s{GENERATE}", {"token_ids": [5], "sampling_params": {"n": 2}})
    spans = [choice["weight_versions"] for choice in told["choices"]]
    ends = [len(choice["token_ids"]) for choice in told["choices"]]
    assert spans == [[{"version": "v7", "start": 0, "end": end}] for end in ends]


async def test_the_model_may_be_left_out_and_no_other_be_named(model: Model) -> None:
    async with Stage(model, MemoryStore()) as stage:
        told = await stage.tell(GENERATE, {"token_ids": [5], "sampling_params": {}, "request_id": "mine"})
        assert (told["model"], told["request_id"]) == (None, "generate-tokens-mine")
        refused = await stage.http.post(GENERATE, json={"token_ids": [5], "sampling_params": {}, "model": "nobody"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(("path", "field"), [("/v1/completions", "prompt"), (GENERATE, "token_ids")])
async def test_what_does_not_fit_is_called_by_its_own_name(model: Model, path: str, field: str) -> None:
    async with Stage(model, MemoryStore()) as stage:
        error = (await stage.http.post("/s/s" + path, json={"model": "m", field: [5] * 9000})).json()["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", field)


async def test_the_sdk_streams_and_is_told_of_what_breaks_off(model: Model) -> None:
    async with Stage(model, MemoryStore(), Script(replies=("the first reply",))) as stage:
        http = openai.DefaultAsyncHttpxClient(transport=InProcess(stage.app))
        client = openai.AsyncOpenAI(base_url=f"{HERE}/s/s/v1", api_key="EMPTY", http_client=http, max_retries=0)
        chunks = [chunk async for chunk in await client.completions.create(model="m", prompt="Once", stream=True)]
        assert "".join(chunk.choices[0].text for chunk in chunks) == "the first reply"
        assert chunks[-1].choices[0].finish_reason == "stop"
        whole = await client.completions.create(model="m", prompt="Once", logprobs=0)
        assert whole.choices[0].text == "the first reply"
        with stage.watched.faulty(FaultKind.FAIL_MIDWAY):
            stream = await client.completions.create(model="m", prompt="Once", stream=True)
            heard: list[Completion] = []
            with pytest.raises(openai.APIError):
                await _all_of(stream, heard)
        assert "the first reply".startswith("".join(chunk.choices[0].text for chunk in heard))
        assert all(chunk.choices[0].finish_reason is None for chunk in heard)
        assert heard
        session = await stage.get("/sessions/s")
    assert (session["turns"], session["attempts"]["engine_error"]) == (2, 1)


async def _all_of(stream: AsyncIterator[Completion], heard: list[Completion]) -> None:
    async for chunk in stream:
        heard.append(chunk)
