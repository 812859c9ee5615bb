"""What an agent asks before it begins: who is there, and which models."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from stenograph.store.memory import MemoryStore
from tests.stage import models
from tests.stage.models import Model
from tests.stage.stage import Stage


@pytest.fixture(scope="module")
def model() -> Model:
    return models.model(models.ALWAYS)


@pytest.fixture
async def stage(model: Model) -> AsyncIterator[Stage]:
    async with Stage(model, MemoryStore()) as playing:
        yield playing


@pytest.mark.parametrize("name", ["scripted", "Qwen/Qwen3-8B"])
async def test_under_a_session_the_sdks_find_a_model_of_any_name(stage: Stage, name: str) -> None:
    session = stage.session()
    assert (await session.openai().models.retrieve(name)).id == name
    assert (await session.anthropic().models.retrieve(name)).id == name


async def test_elsewhere_there_is_the_one_that_is_listed(stage: Stage) -> None:
    (listed,) = (await stage.get("/v1/models"))["data"]
    assert await stage.get("/v1/models/scripted") == listed
    response = await stage.http.get("/v1/models/another")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")


async def test_the_sdks_list_them(stage: Stage) -> None:
    session = stage.session()
    assert [one.id async for one in session.openai().models.list()] == ["scripted"]
    assert [one.id async for one in session.anthropic().models.list()] == ["scripted"]


@pytest.mark.parametrize("knocked", ["/", "/v1", "/s/a", "/s/a/v1"])
async def test_whoever_knocks_is_let_in(stage: Stage, knocked: str) -> None:
    for method in ("GET", "HEAD"):
        assert (await stage.http.request(method, knocked)).status_code == 200
