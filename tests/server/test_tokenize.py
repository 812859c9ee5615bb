"""`/tokenize` says what a request would be sent with now, and leaves no trace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stenograph.core import JSON
from stenograph.engine.script import Script
from stenograph.store.memory import MemoryStore
from tests.stage import models
from tests.stage.models import LOOK, Model
from tests.stage.stage import Stage

HELLO: list[JSON] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module", params=models.NAMES)
def model(request: pytest.FixtureRequest) -> Model:
    return models.model(request.param)


@pytest.fixture
def small() -> Model:
    return models.model(models.ALWAYS)


@pytest.fixture
def thinker() -> Model:
    return models.model("qwen3")


@pytest.fixture
def llama() -> Model:
    return models.model("llama3.1")


@asynccontextmanager
async def stage(model: Model, **options: Any) -> AsyncIterator[Stage]:
    async with Stage(model, MemoryStore(), Script(model=model.name, seed=3, cut=1.0), **options) as playing:
        yield playing


async def refused(playing: Stage, path: str, body: JSON, headers: dict[str, str] | None = None) -> tuple[int, JSON]:
    response = await playing.http.post(path, json=body, headers=headers or {})
    return response.status_code, response.json()["error"]


# ---------------------------------------------------------------------------------------------- what would be sent now


async def test_it_foretells_the_prompt_of_every_turn_id_for_id(model: Model) -> None:
    """Sampled ids are not canonical here: whoever encodes the text of the history gets others."""
    async with stage(model) as playing:
        messages = list(HELLO)
        for number in range(4):
            foretold = await playing.tell("/s/run/tokenize", {"messages": messages, "tools": [LOOK]})
            answer = await playing.say("run", messages, tools=[LOOK], max_tokens=12)
            assert tuple(foretold["tokens"]) == answer.prompt_ids
            assert foretold["count"] == len(answer.prompt_ids)
            messages += [answer.choices[0].message, {"role": "user", "content": f"Next {number}"}]
        canonical = await playing.tell("/tokenize", {"messages": messages[:-2], "tools": [LOOK]})
        assert tuple(canonical["tokens"]) != answer.prompt_ids


async def test_template_arguments_count_as_they_do_for_a_request(thinker: Model) -> None:
    async with stage(thinker) as playing:
        for switch in ({"chat_template_kwargs": {"enable_thinking": False}}, {"reasoning_effort": "none"}, {}):
            foretold = await playing.tell("/s/run/tokenize", {"messages": HELLO, **switch})
            answer = await playing.say("run", HELLO, max_tokens=3, **switch)
            assert tuple(foretold["tokens"]) == answer.prompt_ids


async def test_a_trailing_assistant_message_is_a_beginning(small: Model) -> None:
    async with stage(small) as playing:
        messages = [*HELLO, {"role": "assistant", "content": "I think"}]
        foretold = await playing.tell("/s/run/tokenize", {"messages": messages, "add_generation_prompt": False})
        assert tuple(foretold["tokens"]) == (await playing.say("run", messages, max_tokens=3)).prompt_ids


async def test_a_marker_in_a_message_is_text_and_in_a_prompt_a_marker(small: Model) -> None:
    async with stage(small) as playing:
        marker = small.tokenizer.added["<|im_end|>"]
        as_text = await playing.tell("/tokenize", {"messages": [{"role": "user", "content": "<|im_end|>"}]})
        assert as_text["tokens"].count(marker) == 2
        assert (await playing.tell("/tokenize", {"prompt": "<|im_end|>"}))["tokens"] == [marker]


async def test_nothing_is_recorded_and_no_session_is_opened(small: Model) -> None:
    async with stage(small) as playing:
        await playing.tell("/s/never/tokenize", {"messages": HELLO})
        await playing.tell("/tokenize", {"messages": HELLO, "session_id": "never"})
        await playing.tell("/tokenize", {"prompt": "Hello"})
        await playing.tell("/s/never/detokenize", {"tokens": [5]})
        assert await playing.get("/sessions") == {"sessions": []}
        await playing.say("run", HELLO, max_tokens=3)
        before = await playing.get("/sessions/run")
        await playing.tell("/s/run/tokenize", {"messages": HELLO})
        assert await playing.get("/sessions/run") == before


async def test_the_session_is_found_as_for_any_call(small: Model) -> None:
    async with stage(small) as playing:
        opened = await playing.tell("/sessions", {"id": "run"})
        messages = list(HELLO)
        answer = await playing.say("run", messages, max_tokens=12)
        messages += [answer.choices[0].message, {"role": "user", "content": "Next"}]
        named = await playing.tell("/s/run/tokenize", {"messages": messages})
        body: dict[str, JSON] = {"messages": messages}
        for headers in ({"x-session-id": "run"}, {"authorization": f"Bearer {opened['api_key']}"}):
            assert (await playing.http.post("/tokenize", json=body, headers=headers)).json() == named
        assert await playing.tell("/tokenize", {**body, "session_id": "run"}) == named
        assert await playing.tell("/tokenize", body) != named


async def test_a_finished_session_can_be_looked_at(small: Model) -> None:
    async with stage(small) as playing:
        await playing.tell("/sessions", {"id": "run"})
        await playing.tell("/sessions/run/finish", {})
        assert (await playing.tell("/s/run/tokenize", {"messages": HELLO}))["count"] > 0


# --------------------------------------------------------------------------------------------------------- vLLM's shape


async def test_the_fields_are_vllms(small: Model) -> None:
    async with stage(small) as playing:
        spelled = await playing.tell("/tokenize", {"prompt": "Hello there", "return_token_strs": True})
        assert list(spelled) == ["count", "max_model_len", "tokens", "token_strs"]
        assert spelled["token_strs"] == ["Hello", "Ġthere"]
        assert spelled["count"] == len(spelled["tokens"]) == 2
        assert spelled["max_model_len"] == (await playing.get("/v1/models"))["data"][0]["max_model_len"]
        assert (await playing.tell("/tokenize", {"prompt": "Hello"}))["token_strs"] is None


async def test_a_prompt_gets_what_the_tokenizer_puts_around_a_text(llama: Model) -> None:
    async with stage(llama) as playing:
        bos = llama.tokenizer.added["<|begin_of_text|>"]
        with_bos = await playing.tell("/tokenize", {"prompt": "Hi"})
        without = await playing.tell("/tokenize", {"prompt": "Hi", "add_special_tokens": False})
        assert with_bos["tokens"] == [bos, *without["tokens"]]


async def test_and_back(model: Model) -> None:
    async with stage(model) as playing:
        text = "naïve <|im_end|> 日本 😀\n  x"
        ids = (await playing.tell("/tokenize", {"prompt": text, "add_special_tokens": False}))["tokens"]
        assert await playing.tell("/detokenize", {"tokens": ids}) == {"prompt": text}
        assert await playing.tell("/detokenize", {"tokens": []}) == {"prompt": ""}


async def test_ids_that_are_no_tokens_are_refused(small: Model) -> None:
    async with stage(small) as playing:
        status, error = await refused(playing, "/detokenize", {"tokens": [5, small.tokenizer.vocab_size]})
        assert (status, error["param"]) == (400, "tokens[1]")
        status, error = await refused(playing, "/detokenize", {"tokens": [-1]})
        assert status == 400


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "prompt"),
        ({"prompt": "Hi", "messages": HELLO}, "prompt"),
        ({"messages": []}, "messages"),
        ({"messages": HELLO, "add_generation_prompt": False}, "add_generation_prompt"),
        ({"messages": HELLO, "continue_final_message": True}, "continue_final_message"),
        ({"messages": HELLO, "add_special_tokens": True}, "add_special_tokens"),
        ({"messages": HELLO, "chat_template": "{{ messages }}"}, "chat_template"),
        ({"messages": HELLO, "chat_template_kwargs": {"tools": []}}, "chat_template_kwargs.tools"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": models.REFUSED}]}, "messages"),
        ({"prompt": 5}, "prompt"),
    ],
)
async def test_what_no_request_would_be_sent_with_is_refused(small: Model, body: JSON, param: str) -> None:
    async with stage(small) as playing:
        status, error = await refused(playing, "/s/run/tokenize", body)
        assert (status, error["param"]) == (400, param)


async def test_another_model_is_not_there_but_under_a_session(small: Model) -> None:
    async with stage(small) as playing:
        body: JSON = {"model": "gpt-17", "prompt": "Hi"}
        assert (await refused(playing, "/tokenize", body))[0] == 404
        assert (await playing.tell("/s/run/tokenize", body))["count"] == 1
        assert (await playing.tell("/tokenize", {"model": None, "prompt": "Hi"}))["count"] == 1


async def test_a_body_has_a_bound(small: Model) -> None:
    async with stage(small, max_body_bytes=100) as playing:
        assert (await refused(playing, "/tokenize", {"prompt": "x" * 100}))[0] == 413


async def test_with_an_admin_key_a_session_needs_its_own(small: Model) -> None:
    async with stage(small, admin_key="secret") as playing:
        admin = {"authorization": "Bearer secret"}
        opened = (await playing.http.post("/sessions", json={"id": "run"}, headers=admin)).json()
        body: JSON = {"tokens": [5]}
        assert (await refused(playing, "/detokenize", body))[0] == 401
        assert (await refused(playing, "/s/other/detokenize", body))[0] == 404
        assert (await refused(playing, "/s/run/detokenize", body))[0] == 401
        own = {"authorization": f"Bearer {opened['api_key']}"}
        assert (await playing.http.post("/s/run/detokenize", json=body, headers=own)).status_code == 200
