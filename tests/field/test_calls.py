"""FIELD D, what becomes of a call: repeated, failed, left, streamed, unnamed."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import openai
import pytest

from stenograph.clients import InProcess
from stenograph.core import JSON
from stenograph.engine.script import FaultKind
from stenograph.gateway import HERE
from tests.field.families import TOOLS_UNTOLD
from tests.field.play import TOOL, Play, playing
from tests.field.player import CONTEXT, NAME, Line
from tests.laws.record import sampled
from tests.stage.models import Model

# ------------------------------------------------------------------------------------------------------------ repeats


class Impatient(httpx2.AsyncBaseTransport):
    """Gives up on its first request, as if its time were over, while the engine is at it or when the answer is lost."""

    def __init__(self, play: Play, *, lost: bool) -> None:
        self._inner = InProcess(play.stage.witness)
        self._player = play.player
        self._lost = lost
        self._tried = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._tried:
            assert request.headers["x-stainless-retry-count"] == "1"
            self._player.gate.set()
            return await self._inner.handle_async_request(request)
        self._tried = True
        first = asyncio.create_task(self._inner.handle_async_request(request))
        await (first if self._lost else self._player.arrived.get())
        first.cancel()
        await asyncio.wait({first})
        raise httpx2.ReadTimeout("too late", request=request)


@pytest.mark.parametrize("lost", [False, True], ids=["under_way", "answered"])
async def test_repeats_after_a_client_timeout(model: Model, lost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)
    async with playing(model, grace=60) as play:
        if not lost:
            play.player.gate.clear()
        talk = play.talk(tools=[TOOL])
        play.client = play.client_with(Impatient(play, lost=lost), max_retries=1)
        await talk.call("Find", q="cats")
        play.client = play.client_with(InProcess(play.stage.witness))
        await talk.ask(*talk.results(), line=Line("Found."))
        assert len(play.player.calls) == 2
        await play.left("", "", samples=1)


# ------------------------------------------------------------------------------------------------------ what goes wrong


async def test_prompt_too_long_trimmed_retried(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", q="cats")
        with pytest.raises(openai.BadRequestError) as refused:
            await talk.ask(*talk.results("cat " * CONTEXT))
        assert refused.value.code == "context_length_exceeded"
        talk.messages[-1]["content"] = "cat"
        await talk.ask(line=Line("Found."))
        assert len(play.player.calls) == 2, "the engine never saw what is too long"
        await play.left("", "", samples=1, attempts={"context_overflow": 1})


@pytest.mark.parametrize("fault", [FaultKind.CRASH, FaultKind.FAIL_AT_START, FaultKind.FAIL_MIDWAY])
async def test_engine_error_then_something_else(model: Model, fault: FaultKind) -> None:
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", q="cats")
        before = list(talk.messages)
        with play.player.faulty(fault), pytest.raises(openai.InternalServerError):
            await talk.ask(*talk.results(), line=Line("Never heard."))
        talk.messages = before
        await talk.ask(*talk.results("found nothing"), line=Line("Not found."))
        await play.left("", "", samples=1, attempts={"engine_error": 1})


async def test_engine_leaves_out_a_logprob(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk()
        with play.player.faulty(FaultKind.MISSING_LOGPROB), pytest.raises(openai.APIStatusError) as failed:
            await talk.ask("One", line=Line("Never heard."))
        assert (failed.value.status_code, failed.value.code) == (502, "engine_evidence_unusable")
        assert not play.record().turns
        await talk.ask(line=Line("First."))
        await play.left("", samples=1, attempts={"engine_error": 1})


async def test_disconnects_mid_answer(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", q="cats")
        play.player.hold_behind = 3
        before = list(talk.messages)
        stream: Any = await talk.send(*talk.results(), lines=[Line("Never heard to its end.")], **STREAMED)
        ids = [id async for id in _ids(stream, 3)]
        await stream.close()
        await play.stage.settled()
        assert play.player.calls[-1].aborted
        assert list(play.player.calls[-1].choices[0].ids) == ids
        play.player.hold_behind, talk.messages = None, before
        play.player.gate.set()
        await talk.ask(*talk.results(), line=Line("Found."))
        await play.left("", "", samples=1, attempts={"disconnected": 1})


# -------------------------------------------------------------------------------------------------- how it is asked for

STREAMED: JSON = {"stream": True, "extra_body": {"return_token_ids": True}}


async def _ids(stream: Any, count: int) -> Any:
    """The first ids of a stream."""
    async for chunk in stream:
        for id in [id for choice in chunk.choices for id in (choice.model_extra or {}).get("token_ids") or ()]:
            count -= 1
            yield id
        if count == 0:
            return


async def test_asks_for_a_stream(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk()
        play.player.hold_behind = 3
        stream: Any = await talk.send("One", lines=[Line("The first answer, looking at tokenization.")], **STREAMED)
        early = [id async for id in _ids(stream, 3)]
        assert not play.player.calls, "they came while the engine was still at it"
        play.player.gate.set()
        late = [chunk async for chunk in stream]
        text = "".join(choice.delta.content or "" for chunk in late for choice in chunk.choices)
        ids = [*early, *(id for chunk in late for c in chunk.choices for id in c.model_extra.get("token_ids") or ())]
        (turn,) = play.record().turns.values()
        assert ids == sampled(turn)
        assert (turn.reply.content or "").endswith(text)
        await play.left("", samples=1)


async def test_omits_the_session(model: Model) -> None:
    async with playing(model) as play:
        http = httpx2.AsyncClient(transport=InProcess(play.stage.witness), timeout=None)
        client = openai.AsyncOpenAI(base_url=f"{HERE}/v1", api_key="EMPTY", http_client=http)
        asked: JSON = {"model": NAME, "messages": [{"role": "user", "content": "One"}]}
        answers = [await client.chat.completions.with_raw_response.create(**asked) for _ in range(2)]
        own = [answer.headers["x-session-id"] for answer in answers]
        assert len({*own, play.session.id}) == 3
        for session in own:
            told = await play.stage.get(f"/sessions/{session}")
            assert (told["state"], told["turns"], told["branches"]) == ("open", 1, 1)
        play.stage.later(days=1)
        assert [(await play.stage.get(f"/sessions/{session}"))["state"] for session in own] == ["expired"] * 2
        await play.left(samples=0)


async def test_never_asks_for_logprobs(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk()
        answer = await talk.send("One", lines=[Line("First.")])
        assert answer.choices[0].logprobs is None
        (sample,) = play.session.samples()
        logged = play.player.calls[0].choices[0].logprobs
        assert [round(one, 5) for one in sample.logprobs[sample.mask == 1].tolist()] == [round(x, 5) for x in logged]
        assert any(logged)
        await play.left("", samples=1)


# --------------------------------------------------------------------------------------------------- every parameter

HONOURED: JSON = {
    "temperature": 0.5,
    "top_p": 0.9,
    "stop": ["STOP"],
    "seed": 7,
    "max_completion_tokens": 100,
    "presence_penalty": 0.25,
    "frequency_penalty": 0.5,
    "logit_bias": {"5": -1},
    "response_format": {"type": "text"},
    "extra_body": {"top_k": 20, "min_p": 0.125, "repetition_penalty": 1.5, "min_tokens": 2},
}
SENT: JSON = {
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": 7,
    "max_tokens": 100,
    "presence_penalty": 0.25,
    "frequency_penalty": 0.5,
    "logit_bias": {5: -1.0},
    "top_k": 20,
    "min_p": 0.125,
    "repetition_penalty": 1.5,
    "min_tokens": 2,
}
REFUSED: dict[str, JSON] = {
    "response_format": {"response_format": {"type": "json_object"}},
    "tool_choice": {"tools": [TOOL], "tool_choice": "required"},
    "parallel_tool_calls": {"tools": [TOOL], "parallel_tool_calls": False},
    "guided_regex": {"extra_body": {"guided_regex": "a+"}},
    "use_beam_search": {"extra_body": {"use_beam_search": True}},
}
"""By `error.param`: what cannot be honoured yet."""


async def test_sends_every_parameter(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        heard = await talk.ask("One", line=Line("This is the first STOP and never that."), **HONOURED)
        assert heard.message["content"].strip() == "This is the first"
        sent = play.player.calls[0].sampling
        assert {name: sent[name] for name in SENT} == SENT
        assert sent["stop"][:1] == ("STOP",)
        prompt = play.stage.renderer.tokenizer.decode(play.player.calls[0].prompt)
        assert ("Looks something up." in prompt) == (model.name not in TOOLS_UNTOLD)
        await play.left("", samples=1)


async def test_parameters_that_cannot_be_honoured_are_refused(model: Model) -> None:
    async with playing(model) as play:
        for param, options in REFUSED.items():
            with pytest.raises(openai.BadRequestError) as refused:
                await play.talk().ask("One", **options)
            assert refused.value.param == param
        assert not play.player.calls
        await play.left(samples=0, attempts={"refused": len(REFUSED)})
