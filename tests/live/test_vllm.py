"""The adapter on a real vLLM, whichever model it serves: `STENOGRAPH_VLLM_URL=http://127.0.0.1:8100 pytest -m live`."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import aiohttp
import numpy as np
import pytest

from stenograph.core import Conversation, Delta, Guide, Message, Request
from stenograph.engine.evidence import checked
from stenograph.engine.vllm import VllmEngine
from stenograph.errors import CallerError, ContextLengthExceeded
from stenograph.render.held import Demand, Holder
from tests.engine.streams import finish, ids, logprobs, proven, request
from tests.stage import models
from tests.stage.models import LOOK

URL = os.environ.get("STENOGRAPH_VLLM_URL", "")
pytestmark = [pytest.mark.live, pytest.mark.skipif(not URL, reason="STENOGRAPH_VLLM_URL names no vLLM server")]

ANY_VOCABULARY = 1 << 30
SECONDS = 240
"""For a machine that has other things to do. Waiting for nothing costs nothing."""
LOOK_SECONDS = 0.2


def greedy(**more: Any) -> Request:
    return request(range(20, 40), temperature=0.0, max_tokens=12, ignore_eos=True, **more)


@pytest.fixture
async def vllm() -> AsyncIterator[VllmEngine]:
    engine = VllmEngine(URL)
    await engine.start()
    yield engine
    await engine.close()


async def said(vllm: VllmEngine, asked: Request) -> list[Delta]:
    return await proven(vllm.generate(asked), asked, ANY_VOCABULARY)


async def text_of(token: int) -> str:
    async with aiohttp.request("POST", URL.removesuffix("/v1") + "/detokenize", json={"tokens": [token]}) as answer:
        text: str = (await answer.json())["prompt"]
    return text


async def texts_of(tokens: list[int]) -> str:
    return "".join([await text_of(token) for token in tokens])


async def running() -> float:
    async with aiohttp.request("GET", URL.removesuffix("/v1") + "/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_requests_running"))


async def settled(count: int) -> None:
    async with asyncio.timeout(SECONDS):
        while await running() != count:  # noqa: ASYNC110 (a server that tells nobody)
            await asyncio.sleep(LOOK_SECONDS)


async def test_it_says_what_it_is(vllm: VllmEngine) -> None:
    info = await vllm.start()
    assert info.max_model_len > 0
    assert info.logprob_kind in ("raw", "processed")
    assert await vllm.healthy()


async def test_one_choice(vllm: VllmEngine) -> None:
    deltas = await said(vllm, request(range(20, 40), max_tokens=16, ignore_eos=True))
    assert len(ids(deltas)) == len(logprobs(deltas)) == 16
    end = finish(deltas)
    assert end
    assert end.reason == "length"


async def test_many_choices_at_once(vllm: VllmEngine) -> None:
    asked = [request(range(20, 30 + place), n=2, id=f"live-{place}", max_tokens=8) for place in range(4)]
    answers = await asyncio.gather(*(said(vllm, one) for one in asked))
    assert all(finish(deltas, choice) for deltas in answers for choice in (0, 1))
    assert any(ids(deltas, 0) != ids(deltas, 1) for deltas in answers)


async def test_a_stop_id_is_the_last_token(vllm: VllmEngine) -> None:
    sampled = ids(await said(vllm, greedy()))
    stop = sampled[3]
    deltas = await said(vllm, greedy(stop_token_ids=(stop,)))
    assert ids(deltas) == sampled[: sampled.index(stop) + 1]
    end = finish(deltas)
    assert end
    assert (end.reason, end.stop) == ("stop", stop)


async def test_the_tokens_of_a_stop_string_are_there(vllm: VllmEngine) -> None:
    sampled = ids(await said(vllm, greedy()))
    stop = await text_of(sampled[3])
    deltas = await said(vllm, greedy(stop=(stop,)))
    assert ids(deltas) == sampled[: len(ids(deltas))]
    assert stop in await text_of(ids(deltas)[-1])
    end = finish(deltas)
    assert end
    assert (end.reason, end.stop) == ("stop", stop)


async def test_alternatives_stand_beside_the_tokens(vllm: VllmEngine) -> None:
    deltas = await said(vllm, greedy(top=5))
    rows = [row for one in deltas for row in one.top or ()]
    assert [row[0].token_id for row in rows] == ids(deltas)
    assert np.allclose([row[0].logprob for row in rows], logprobs(deltas))
    alone = await said(vllm, greedy())
    assert ids(alone) == ids(deltas)


async def test_every_parameter_is_accepted(vllm: VllmEngine) -> None:
    unusual: dict[str, Any] = {
        "top_p": 0.9,
        "top_k": 20,
        "min_p": 0.05,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.5,
    }
    rest: dict[str, Any] = {
        "repetition_penalty": 1.1,
        "seed": 3,
        "min_tokens": 2,
        "logit_bias": {25: 1.0},
        "temperature": 0.7,
    }
    assert await said(vllm, request(range(20, 40), **unusual, **rest))


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "enum": [1, 2]}}, "required": ["a"]}
GUIDED: list[tuple[Guide, str]] = [
    (Guide("regex", "(yes|no), (yes|no)"), "(yes|no), (yes|no)"),
    (Guide("choice", ["blue", "green"]), "blue|green"),
    (Guide("grammar", 'root ::= "is " ("it" | "not")'), "is (it|not)"),
]


async def test_a_reply_is_held_to_a_schema(vllm: VllmEngine) -> None:
    """White space is allowed anywhere, and a small model may like it so much that it never ends."""
    deltas = await said(vllm, request(range(20, 40), max_tokens=64, guide=Guide("json", SCHEMA)))
    end = finish(deltas)
    assert end
    sampled = ids(deltas)[:-1] if end.reason == "stop" else ids(deltas)
    text = "".join((await texts_of(sampled)).split())
    assert any(form == text if end.reason == "stop" else form.startswith(text) for form in ('{"a":1}', '{"a":2}'))


@pytest.mark.parametrize(("guide", "pattern"), GUIDED)
async def test_a_reply_is_held_to_its_form(vllm: VllmEngine, guide: Guide, pattern: str) -> None:
    assert guide.kind in (await vllm.start()).guides
    deltas = await said(vllm, request(range(20, 40), max_tokens=64, guide=guide))
    assert re.fullmatch(pattern, await texts_of(ids(deltas)[:-1]), re.DOTALL)
    end = finish(deltas)
    assert end
    assert end.reason == "stop"


async def test_a_reply_is_held_to_calls_as_a_family_writes_them(vllm: VllmEngine) -> None:
    """By what the gateway itself sends: xgrammar has to understand it, control tokens included."""
    if (await vllm.start()).model != models.ALWAYS:
        pytest.skip(f"it serves another model than {models.ALWAYS}")
    renderer = (await asyncio.to_thread(models.model, models.ALWAYS)).house.renderer
    conversation = Conversation((Message("user", "Hello"),), tools=(LOOK,))
    family = renderer.family(conversation)
    for demand in (Demand(calls=True), Demand(calls=True, tool="look", single=True), Demand(single=True)):
        guide = Holder(family, conversation, thinking=False).guide(demand)
        assert guide is not None
        deltas = await said(
            vllm, request(range(20, 40), max_tokens=200, guide=guide, stop_token_ids=tuple(renderer.stop_ids))
        )
        reader = family.reader(conversation, thinking=False, stop=(), new_call_id=lambda: "c")
        reader.feed(ids(deltas))
        end = finish(deltas)
        assert end
        if end.reason == "stop" and demand.calls:
            assert {call.name for call in reader.reply.tool_calls} == {"look"}
            assert not reader.reply.content


async def test_a_form_that_makes_no_sense_is_the_callers_fault(vllm: VllmEngine) -> None:
    with pytest.raises(CallerError):
        await said(vllm, request(guide=Guide("regex", "(")))


async def test_going_away_aborts(vllm: VllmEngine) -> None:
    asked = request(range(20, 40), max_tokens=2000, ignore_eos=True)
    async with aclosing(checked(vllm.generate(asked), asked, ANY_VOCABULARY)) as deltas:
        await anext(deltas)
        await settled(1)
    await settled(0)


async def test_what_does_not_fit_is_an_overflow(vllm: VllmEngine) -> None:
    length = (await vllm.start()).max_model_len
    assert len(ids(await said(vllm, request([20] * (length - 1))))) == 1
    for too_long in (length, length + 1):
        with pytest.raises(ContextLengthExceeded):
            await said(vllm, request([20] * too_long))


async def test_a_refusal_is_the_callers_fault(vllm: VllmEngine) -> None:
    with pytest.raises(CallerError) as caught:
        await said(vllm, request(top_p=1.5))
    assert caught.value.param == "top_p"
    with pytest.raises(CallerError, match="vocab"):
        await said(vllm, request([ANY_VOCABULARY - 1]))
