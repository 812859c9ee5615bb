"""The adapter over real sockets: against the scripted engine behind vLLM's HTTP, and against bytes that break off."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from stenograph.core import Delta, Request
from stenograph.engine.evidence import checked
from stenograph.engine.raw import MISREPORTS
from stenograph.engine.script import Fault, FaultKind, Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.engine.vllm import VllmEngine
from stenograph.errors import (
    CallerError,
    ContextLengthExceeded,
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    EvidenceError,
    Overloaded,
)
from tests.engine.servers import LAST_CHUNK, chunked, plain, saying, serving
from tests.engine.streams import END, finish, ids, logprobs, proven, request, small_tokenizer
from tests.engine.transcripts import PROMPT, transcript

SMALL = small_tokenizer()
CLOSE = SMALL.added[END]


async def said(vllm: VllmEngine, asked: Request, vocab_size: int = SMALL.vocab_size) -> list[Delta]:
    return await proven(vllm.generate(asked), asked, vocab_size)


async def over_http(engine: ScriptedEngine, asked: Request) -> list[Delta]:
    async with serving(engine) as url:
        vllm = VllmEngine(url, model="scripted")
        try:
            return await said(vllm, asked)
        finally:
            await vllm.close()


@pytest.mark.parametrize(
    "asked",
    [
        request(max_tokens=30),
        request(n=3, top=2, max_tokens=30, stop_token_ids=(CLOSE,)),
        request(stop=("the",), max_tokens=60, ignore_eos=True),
        request(top=20, temperature=0.5, seed=3, min_tokens=5),
    ],
)
@pytest.mark.parametrize("kind", ["raw", "temperature", "processed"])
async def test_http_changes_nothing_of_what_was_said(asked: Request, kind: Any) -> None:
    """The same script in process, over the wire, and in the engine's own log: not a bit differs."""
    script = Script(seed=3, chunk=2, logprob_kind=kind)
    near, far = ScriptedEngine(script, SMALL), ScriptedEngine(script, SMALL)
    here, there = await proven(near.generate(asked), asked, SMALL.vocab_size), await over_http(far, asked)
    for choice, logged in enumerate(far.calls[0].choices):
        assert ids(there, choice) == ids(here, choice) == list(logged.ids)
        assert logprobs(there, choice) == logprobs(here, choice) == list(logged.logprobs)
        assert finish(there, choice) == finish(here, choice)
    assert [one.top for one in there][: len(here)] == [one.top for one in here]
    assert (far.calls[0].request_id, far.calls[0].session_id) == (asked.id, asked.session_id)
    assert far.calls[0].sampling == near.calls[0].sampling


@pytest.mark.parametrize("kind", list(MISREPORTS))
async def test_every_misreport_is_refused(kind: FaultKind) -> None:
    engine = ScriptedEngine(Script(faults=(Fault(kind, every=1),), chunk=3, longest=8), SMALL)
    with pytest.raises(EvidenceError):
        await over_http(engine, request(n=2, stop_token_ids=(CLOSE,)))


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        (FaultKind.FAIL_AT_START, EngineUnavailable, "the script wants no engine here"),
        (FaultKind.REFUSE, CallerError, "the script refuses this call"),
        (FaultKind.CRASH, EngineError, "the script crashes"),
        (FaultKind.FAIL_MIDWAY, EngineError, "the script fails in the middle"),
        (FaultKind.CUT, EngineError, "broke off in the middle of its answer"),
        (FaultKind.HALF_LINE, EngineError, "broke off in the middle of its answer"),
    ],
)
async def test_every_failure_is_translated(kind: FaultKind, error: type[Exception], words: str) -> None:
    engine = ScriptedEngine(Script(faults=(Fault(kind, every=1),)), SMALL)
    with pytest.raises(error, match=words):
        await over_http(engine, request())


async def test_closing_early_aborts_on_the_engine() -> None:
    engine, asked = ScriptedEngine(Script(replies=((5,) * 1000,)), SMALL), request(max_tokens=1000)
    async with asyncio.timeout(10), serving(engine) as url:
        vllm = VllmEngine(url, model="scripted")
        async with aclosing(checked(vllm.generate(asked), asked, SMALL.vocab_size)) as deltas:
            assert (await anext(deltas)).ids.tolist() == [5]
            engine.gate.clear()
    (call,) = engine.calls
    assert call.aborted
    assert call.choices[0].finish_reason is None
    await vllm.close()


@pytest.mark.parametrize("answer", [b"", chunked(transcript("length")[:700])])
async def test_a_cancelled_call_closes_its_connection(answer: bytes) -> None:
    async with asyncio.timeout(10), saying(answer, hold=True) as wire:
        vllm = VllmEngine(wire.url, model="smollm2")
        waiting = asyncio.create_task(said(vllm, request(PROMPT), 49152))
        await wire.heard.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await wire.gone.wait()
        await vllm.close()


def boundaries(sent: bytes) -> list[int]:
    return [0, *(at + 2 for at in range(len(sent)) if sent.startswith(b"\n\n", at))]


@pytest.mark.parametrize("end", [b"", LAST_CHUNK], ids=["lost", "ended"])
@pytest.mark.parametrize("at", boundaries(transcript("two_choices"))[:-1])
async def test_a_connection_that_ends_between_events_is_an_error(at: int, end: bytes) -> None:
    """Also behind the last token: without `[DONE]` nobody has said that it was the last."""
    sent = transcript("two_choices")[:at]
    async with saying(chunked(sent) + end if sent else chunked() + end) as wire:
        vllm = VllmEngine(wire.url, model="smollm2")
        with pytest.raises(EngineError):
            await said(vllm, request(PROMPT, n=2, top=2), 49152)
        await vllm.close()


async def test_a_whole_transcript_is_an_answer() -> None:
    async with saying(chunked(transcript("two_choices")) + LAST_CHUNK) as wire:
        vllm = VllmEngine(wire.url + "/v1", model="smollm2")
        assert len(ids(await said(vllm, request(PROMPT, n=2, top=2), 49152), 1)) == 4
        await vllm.close()
    assert wire.requests[0].startswith(b"POST /v1/completions HTTP/1.1\r\n")


OVERFLOW = b"""{"error": {"message": "This model's maximum context length is 4096 tokens. However, your prompt \
contains at least 4097 input tokens (parameter=input_tokens, value=4097)", "type": "BadRequestError", "param": \
"input_tokens", "code": 400}}"""
BAD_FIELD = b'{"error": {"message": "not so", "type": "Bad Request", "param": "body.top_p", "code": 400}}'


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (plain("400 Bad Request", OVERFLOW), ContextLengthExceeded, "maximum context length is 4096"),
        (plain("400 Bad Request", BAD_FIELD), CallerError, "^not so$"),
        (plain("422 Unprocessable", BAD_FIELD), CallerError, "^not so$"),
        (plain("401 Unauthorized", b'{"error": "Unauthorized"}'), EngineError, "vllm-0 at .* answers HTTP 401"),
        (plain("404 Not Found", b'{"detail": "Not Found"}'), EngineError, "answers HTTP 404"),
        (plain("429 Too Many", b"", "Retry-After: 3"), Overloaded, "answers HTTP 429"),
        (plain("500 Oh", b'{"error": {"message": "EngineDeadError"}}'), EngineError, "HTTP 500: EngineDeadError"),
        (plain("502 Bad Gateway", b"<html>"), EngineError, "HTTP 502: <html>"),
        (plain("503 Away", b""), EngineUnavailable, "HTTP 503"),
        (plain("504 Late", b""), EngineTimeout, "HTTP 504"),
        (chunked(transcript("foreign_id")) + LAST_CHUNK, CallerError, "out of vocabulary"),
        (chunked(b"data: [DONE]\n\n") + LAST_CHUNK, EvidenceError, "no finish"),
        (plain("200 OK", b'{"choices": []}'), EvidenceError, "in the middle of a line"),
    ],
)
async def test_whose_fault_an_answer_is(answer: bytes, error: type[EngineError], words: str) -> None:
    async with saying(answer) as wire:
        vllm = VllmEngine(wire.url, model="smollm2")
        with pytest.raises(error, match=words) as caught:
            await said(vllm, request())
        await vllm.close()
    assert type(caught.value) is error
    assert caught.value.param == {BAD_FIELD: "top_p", OVERFLOW: "messages"}.get(answer.partition(b"\r\n\r\n")[2])
    assert not isinstance(caught.value, Overloaded) or caught.value.retry_after == 3


async def test_a_foreign_prompt_never_reaches_the_server() -> None:
    async with saying(b"") as wire:
        vllm = VllmEngine(wire.url, model="smollm2")
        with pytest.raises(CallerError, match="outside the vocabulary"):
            await said(vllm, request([99999]))
        await vllm.close()
    assert not wire.requests


async def test_a_prompt_that_fills_the_context_exactly_is_an_overflow() -> None:
    """vLLM's words for that: `max_tokens must be at least 1, got 0`."""
    engine = ScriptedEngine(Script(max_model_len=20, faults=(Fault(FaultKind.REFUSE, every=1),)), SMALL)
    async with serving(engine) as url:
        vllm = VllmEngine(url)
        await vllm.start()
        for length, error in ((20, ContextLengthExceeded), (19, CallerError)):
            with pytest.raises(error) as caught:
                await said(vllm, request(range(length)))
            assert type(caught.value) is error
        await vllm.close()
