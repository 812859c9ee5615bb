"""The adapter on a real SGLang, whatever it serves: `STENOGRAPH_SGLANG_URL=http://127.0.0.1:8200 pytest -m live`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import aiohttp
import numpy as np
import pytest

from stenograph.core import Delta, Request
from stenograph.engine.evidence import checked
from stenograph.engine.sglang import SglangEngine
from stenograph.engine.sglang_wire import REPEATED_EVERY
from stenograph.errors import CallerError, ContextLengthExceeded
from tests.engine.streams import finish, ids, logprobs, proven, request

URL = os.environ.get("STENOGRAPH_SGLANG_URL", "")
pytestmark = [pytest.mark.live, pytest.mark.skipif(not URL, reason="STENOGRAPH_SGLANG_URL names no SGLang server")]

ANY_VOCABULARY = 1 << 30
LOOK_SECONDS = 0.2
TOLERANCE = 0.1
"""In nats, on average, between a few tokens sampled alone and the same scored, in bfloat16; of one it was 0.11."""
SECONDS = 240
"""For one forward pass of a machine that has other things to do. Waiting for nothing costs nothing."""
CHUNKED = REPEATED_EVERY + 4
"""Tokens, so that a stream has several chunks."""


def greedy(**more: Any) -> Request:
    return request(range(20, 40), temperature=0.0, max_tokens=6, ignore_eos="stop_token_ids" not in more, **more)


@pytest.fixture
async def sglang() -> AsyncIterator[SglangEngine]:
    engine = SglangEngine(URL)
    await engine.start()
    yield engine
    await engine.close()


async def said(sglang: SglangEngine, asked: Request) -> list[Delta]:
    return await proven(sglang.generate(asked), asked, ANY_VOCABULARY)


async def running() -> int:
    async with aiohttp.request("GET", URL.removesuffix("/v1") + "/v1/loads") as answer:
        loads = (await answer.json())["loads"]
    return sum(int(load["num_running_reqs"]) for load in loads)


async def settled(count: int) -> None:
    async with asyncio.timeout(SECONDS):
        while await running() != count:  # noqa: ASYNC110 (a server that tells nobody)
            await asyncio.sleep(LOOK_SECONDS)


async def test_it_says_what_it_is(sglang: SglangEngine) -> None:
    info = await sglang.start()
    assert info.max_model_len > 0
    assert info.logprob_kind in ("raw", "temperature")
    assert await sglang.healthy()


async def test_one_choice(sglang: SglangEngine) -> None:
    deltas = await said(sglang, request(range(20, 40), max_tokens=CHUNKED, ignore_eos=True))
    assert len(ids(deltas)) == len(logprobs(deltas)) == CHUNKED
    end = finish(deltas)
    assert end
    assert end.reason == "length"


async def test_many_choices_at_once(sglang: SglangEngine) -> None:
    asked = [request(range(20, 30 + place), n=2, id=f"live-{place}", max_tokens=4) for place in range(2)]
    answers = await asyncio.gather(*(said(sglang, one) for one in asked))
    assert all(finish(deltas, choice) for deltas in answers for choice in (0, 1))
    assert any(ids(deltas, 0) != ids(deltas, 1) for deltas in answers)


async def test_a_stop_id_is_the_last_token(sglang: SglangEngine) -> None:
    sampled = ids(await said(sglang, greedy()))
    stop = sampled[3]
    deltas = await said(sglang, greedy(stop_token_ids=(stop,)))
    assert ids(deltas) == sampled[: sampled.index(stop) + 1]
    end = finish(deltas)
    assert end
    assert (end.reason, end.stop) == ("stop", stop)


async def test_alternatives_stand_beside_the_tokens(sglang: SglangEngine) -> None:
    deltas = await said(sglang, greedy(top=5))
    rows = [row for one in deltas for row in one.top or ()]
    assert len(rows) == len(ids(deltas))
    assert np.allclose([row[0].logprob for row in rows], logprobs(deltas)), "greedy is the best, or as good"


async def test_every_parameter_is_accepted(sglang: SglangEngine) -> None:
    penalties: dict[str, Any] = {"presence_penalty": 0.5, "frequency_penalty": 0.5, "repetition_penalty": 1.1}
    rest: dict[str, Any] = {
        "top_p": 0.9,
        "top_k": 20,
        "min_p": 0.05,
        "min_tokens": 2,
        "max_tokens": 4,
        "logit_bias": {25: 1.0},
    }
    assert await said(sglang, request(range(20, 40), temperature=0.7, **penalties, **rest))


async def test_going_away_aborts(sglang: SglangEngine) -> None:
    asked = request(range(20, 40), max_tokens=2000, ignore_eos=True)
    async with aclosing(checked(sglang.generate(asked), asked, ANY_VOCABULARY)) as deltas:
        await anext(deltas)
        await settled(1)
    await settled(0)


async def test_what_does_not_fit_is_an_overflow(sglang: SglangEngine) -> None:
    length = (await sglang.start()).max_model_len
    for too_long in (length - 6, length - 1, length, length + 1):
        with pytest.raises(ContextLengthExceeded):
            await said(sglang, request([20] * too_long, max_tokens=1))


async def test_a_refusal_is_the_callers_fault(sglang: SglangEngine) -> None:
    with pytest.raises(CallerError, match="top_p"):
        await said(sglang, request(top_p=1.5))


async def test_scores_are_of_the_tokens_that_were_sampled(sglang: SglangEngine) -> None:
    asked = greedy()
    deltas = await said(sglang, asked)
    path = np.concatenate([asked.prompt, np.array(ids(deltas), np.int32)])
    scored = await sglang.score(path, 3)
    sampled = scored.logprobs[len(asked.prompt) - scored.start :]
    assert np.abs(sampled - logprobs(deltas)).mean() < TOLERANCE
    assert scored.top_ids.shape == (len(path) - 1, 3)


async def test_held_it_is_silent_and_goes_on(sglang: SglangEngine) -> None:
    asked = request(range(20, 40), max_tokens=CHUNKED, ignore_eos=True)
    deltas: list[Delta] = []
    async with aclosing(checked(sglang.generate(asked), asked, ANY_VOCABULARY)) as arriving:
        deltas.append(await anext(arriving))
        assert await sglang.hold()
        await sglang.release()
        deltas += [one async for one in arriving]
    assert len(ids(deltas)) == CHUNKED


async def test_a_mask_holds_what_was_left_to_draw_from(sglang: SglangEngine) -> None:
    """That it holds the token that was drawn is seen to by `checked`."""
    deltas = await said(sglang, request(range(20, 40), top_k=3, max_tokens=4, ignore_eos=True))
    rows = [row for one in deltas for row in one.support or ()]
    assert len(rows) == len(ids(deltas))
    assert all(1 <= len(row) <= 3 for row in rows)
