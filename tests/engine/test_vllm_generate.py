"""The better way to sample from vLLM: its own bytes, and whatever can be wrong with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from stenograph.core import Delta, Finish, Request, Sampling, VersionRun
from stenograph.engine.http import EventLines, Refusal
from stenograph.engine.pool import Pool
from stenograph.engine.prompt_json import spelled
from stenograph.engine.raw import MISREPORTS
from stenograph.engine.script import Fault, FaultKind, Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.engine.vllm import VllmEngine
from stenograph.engine.vllm_generate import Reader, body_of
from stenograph.engine.vllm_wire import SUPPORTS
from stenograph.errors import CallerError, ContextLengthExceeded, EngineError, EngineUnavailable, EvidenceError
from tests.engine.servers import LAST_CHUNK, chunked, saying, serving
from tests.engine.streams import END, finish, ids, logprobs, proven, request, small_tokenizer, stream
from tests.engine.transcripts import PROMPT, transcript

VOCABULARY = 49152
SMALL = small_tokenizer()
CLOSE = SMALL.added[END]


def read(
    pieces: Iterable[bytes], *, top: int = 0, n: int = 1, prompt: Sequence[int] = PROMPT, close: bool = True
) -> list[Delta]:
    asked = request(prompt, top=top, n=n)
    reader, lines = Reader("vllm-0", asked, spelled(asked.prompt)), EventLines()
    deltas = [delta for piece in pieces for event in lines.feed(piece) for delta in reader.read(event)]
    if close:
        reader.close()
    return deltas


@pytest.mark.parametrize(
    ("name", "choice", "sampled", "end"),
    [
        ("generate_length", 0, [7952, 5646, 11173, 30], Finish("length")),
        ("generate_stop_id", 0, [7952, 5646], Finish("stop", 5646)),
        ("generate_stop_string", 0, [7952, 5646], Finish("stop", "AI")),
        ("generate_two_choices", 0, [4955, 1036, 28, 18357], Finish("length")),
        ("generate_two_choices", 1, [22553, 6476, 408, 720], Finish("length")),
        ("generate_abort", 0, [7952, 5646, 11173, 30, 339, 5248, 1535, 288, 724, 351, 750, 1942, 282], Finish("abort")),
    ],
)
async def test_a_transcript_reads_as_what_was_sampled(name: str, choice: int, sampled: list[int], end: Finish) -> None:
    top, n = (2, 2) if name == "generate_two_choices" else (0, 1)
    deltas = read([transcript(name)], top=top, n=n)
    assert (ids(deltas, choice), finish(deltas, choice)) == (sampled, end)
    asked = request(PROMPT, n=n, top=top, max_tokens=60)
    assert await proven(stream(deltas), asked, VOCABULARY) == deltas


def test_the_best_alternatives_are_there_whatever_was_sampled() -> None:
    (last,) = [one for one in read([transcript("generate_two_choices")], top=2, n=2) if one.ids.tolist() == [18357]]
    assert logprobs([last]) == pytest.approx([-10.667963027954102])
    assert last.top is not None
    assert [(one.token_id, round(one.logprob, 3)) for one in last.top[0]] == [(253, -1.168), (284, -2.48)]


def test_which_weights_sampled_which_token_is_told_at_the_end() -> None:
    deltas = read([transcript("generate_versions")])
    assert [delta.versions for delta in deltas if delta.versions] == [(VersionRun("v1", 7), VersionRun("v2", 5))]


def test_weights_without_a_name_are_no_version() -> None:
    assert not any(delta.versions for delta in read([transcript("generate_length")]))


def test_an_error_in_the_stream_is_a_refusal() -> None:
    with pytest.raises(Refusal, match="Token id 99999999 is out of vocabulary") as caught:
        read([transcript("generate_foreign_id")])
    assert caught.value.status == 400


@given(st.data())
def test_however_it_arrives_it_reads_the_same(data: st.DataObject) -> None:
    sent = transcript("generate_two_choices")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=5)))
    pieces = [sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    assert len(read(pieces, top=2, n=2)) == 9


@given(st.integers(0, len(transcript("generate_stop_id")) - len(b"\n\n") - 1))
def test_cut_anywhere_it_is_refused(end: int) -> None:
    with pytest.raises(EvidenceError):
        read([transcript("generate_stop_id")[:end]])


def broken(*, prompt: Any = PROMPT, token: Any = None, **changes: Any) -> bytes:
    """One event, right in everything but the changes."""
    alone = {"token_id": 5, "logprob": -1.0, "top_logprobs": [{"token_id": 5, "logprob": -1.0}]} | (token or {})
    choice = {"index": 0, "logprobs": {"content": [alone]}, "token_ids": [5], "finish_reason": "stop"} | changes
    return b"data: " + msgspec.json.encode({"choices": [choice], "prompt_token_ids": prompt}) + b"\n\n"


DONE = b"data: [DONE]\n\n"


def test_one_right_event_passes() -> None:
    assert ids(read([broken(), DONE], top=1)) == [5]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (broken(logprobs=None), "logprobs: missing"),
        (broken(logprobs={"content": []}), "other tokens than the ids"),
        (broken(token={"logprob": None}), "its logprob is missing"),
        (broken(token={"logprob": 0.5}), "positive"),
        (broken(token={"logprob": -9999.0}), "sentinel"),
        (broken(token={"logprob": "-1"}), "cannot be read"),
        (broken(token={"logprob": msgspec.Raw(b"NaN")}), "cannot be read"),
        (broken(token={"token_id": 6}), "other tokens than the ids"),
        (broken(token={"top_logprobs": [{"token_id": 5, "logprob": 0.5}]}), "positive"),
        (broken(token_ids=None), "other tokens than the ids"),
        (broken(token_ids=[5, 6]), "other tokens than the ids"),
        (broken(token_ids=[5.0]), "cannot be read"),
        (broken(prompt=None), "does not confirm the prompt"),
        (broken(prompt=PROMPT[1:]), "does not confirm the prompt"),
        (broken(index="0"), "cannot be read.*index"),
        (broken(weight_versions=[{"version": "a", "start": 0, "end": 2}]), "do not cover"),
        (broken(weight_versions=[{"version": "a", "start": 1, "end": 1}]), "do not cover"),
        (
            broken(weight_versions=[{"version": "a", "start": 0, "end": 1}, {"version": "b", "start": 0, "end": 1}]),
            "do not cover",
        ),
        (b'data: {"choices": [{"index": 0, "tok\n\n', "cannot be read"),
        (b"data: <html>\n\n", "cannot be read"),
    ],
)
def test_unusable_evidence_is_refused(event: bytes, words: str) -> None:
    with pytest.raises(EvidenceError, match=words):
        read([event, DONE], top=1)


def test_every_parameter_is_written_out() -> None:
    asked = request([5, 6], n=2, top=3, max_tokens=9, logit_bias={7: 1.5})
    body = msgspec.json.decode(body_of(asked, "policy", spelled(asked.prompt)))
    sent = body["sampling_params"]
    neutral = msgspec.json.decode(msgspec.json.encode(Sampling(max_tokens=9, logit_bias={7: 1.5})))
    assert {name: sent[name] for name in SUPPORTS}.items() <= neutral.items()
    assert (sent["n"], sent["logprobs"], sent["skip_special_tokens"]) == (2, 4, False)
    assert (body["model"], body["token_ids"], body["request_id"]) == ("policy", [5, 6], "r1")


# ------------------------------------------------------------------------------------------------- over real sockets


@asynccontextmanager
async def connected(engine: ScriptedEngine) -> AsyncIterator[VllmEngine]:
    async with serving(engine, scale_out=True) as url:
        vllm = VllmEngine(url)
        await vllm.start()
        try:
            yield vllm
        finally:
            await vllm.close()


async def over_http(engine: ScriptedEngine, asked: Request) -> list[Delta]:
    async with connected(engine) as vllm:
        return await proven(vllm.generate(asked), asked, SMALL.vocab_size)


@pytest.mark.parametrize(
    "asked",
    [
        request(max_tokens=30),
        request(n=3, top=2, max_tokens=30, stop_token_ids=(CLOSE,)),
        request(stop=("the",), max_tokens=60, ignore_eos=True),
        request(top=19, temperature=0.5, seed=3, min_tokens=5),
    ],
)
@pytest.mark.parametrize("kind", ["raw", "temperature", "processed"])
async def test_http_changes_nothing_of_what_was_said(asked: Request, kind: Any) -> None:
    script = Script(seed=3, chunk=2, logprob_kind=kind, weight_version="v1")
    near, far = ScriptedEngine(script, SMALL), ScriptedEngine(script, SMALL)
    here, there = await proven(near.generate(asked), asked, SMALL.vocab_size), await over_http(far, asked)
    for choice, logged in enumerate(far.calls[0].choices):
        assert ids(there, choice) == ids(here, choice) == list(logged.ids)
        assert logprobs(there, choice) == logprobs(here, choice) == list(logged.logprobs)
        assert finish(there, choice) == finish(here, choice)
        said = [delta.versions for delta in there if delta.choice == choice and delta.versions]
        assert said == [(VersionRun("v1", len(logged.ids)),)]
    assert far.calls[0].request_id == asked.id
    assert far.calls[0].sampling == near.calls[0].sampling


@pytest.mark.parametrize("kind", list(MISREPORTS))
async def test_every_misreport_is_refused(kind: FaultKind) -> None:
    engine = ScriptedEngine(Script(faults=(Fault(kind, every=1),), chunk=3, longest=8), SMALL)
    with pytest.raises(EvidenceError):
        await over_http(engine, request(n=2, stop_token_ids=(CLOSE,)))


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (FaultKind.FAIL_AT_START, EngineUnavailable),
        (FaultKind.REFUSE, CallerError),
        (FaultKind.CRASH, EngineError),
        (FaultKind.FAIL_MIDWAY, EngineError),
        (FaultKind.CUT, EngineError),
        (FaultKind.HALF_LINE, EngineError),
    ],
)
async def test_every_failure_is_translated(kind: FaultKind, error: type[Exception]) -> None:
    with pytest.raises(error):
        await over_http(ScriptedEngine(Script(faults=(Fault(kind, every=1),)), SMALL), request())


@pytest.mark.parametrize("end", [b"", LAST_CHUNK], ids=["lost", "ended"])
async def test_a_connection_that_ends_between_events_is_an_error(end: bytes) -> None:
    sent = transcript("generate_two_choices")
    for at in (place + 2 for place in range(len(sent) - 2) if sent.startswith(b"\n\n", place)):
        async with saying(chunked(sent[:at]) + end) as wire:
            vllm = VllmEngine(wire.url, model="smollm2")
            vllm._offers_generate = True
            asked = request(PROMPT, n=2, top=2)
            with pytest.raises(EngineError):
                await proven(vllm.generate(asked), asked, VOCABULARY)
            await vllm.close()


async def test_an_overflow_is_one_in_its_words_too() -> None:
    words = "The decoder prompt (length 4096) plus ... is longer than the maximum model length of 4096."
    said = msgspec.json.encode({"error": {"message": words, "type": "BadRequestError", "param": None, "code": 400}})
    async with saying(chunked(b"data: " + said + b"\n\ndata: [DONE]\n\n") + LAST_CHUNK) as wire:
        vllm = VllmEngine(wire.url, model="smollm2")
        vllm._offers_generate = True
        with pytest.raises(ContextLengthExceeded):
            await proven(vllm.generate(request()), request(), VOCABULARY)
        await vllm.close()


async def test_a_server_without_it_is_served_the_other_way() -> None:
    engine = ScriptedEngine(Script(replies=((5,),)), SMALL)
    async with serving(engine) as url:
        vllm = VllmEngine(url)
        await vllm.start()
        assert ids(await proven(vllm.generate(request()), request())) == [5]
        assert not await vllm.hold()
        assert not await vllm.held()
        await vllm.release()
        await vllm.close()


async def test_it_is_held_and_goes_on_under_new_weights() -> None:
    engine = ScriptedEngine(Script(replies=(tuple(range(5, 45)),), weight_version="v1", delay=0.002), SMALL)
    asked = request(max_tokens=40, ignore_eos=True)
    async with serving(engine, scale_out=True) as url:
        pool = Pool([VllmEngine(url)], 8)
        await pool.start()
        deltas: list[Delta] = []
        begun = asyncio.Event()

        async def listen() -> None:
            async for delta in pool.generate(asked):
                deltas.append(delta)
                begun.set()

        listening = asyncio.create_task(listen())
        await begun.wait()
        await pool.pause()
        await asyncio.sleep(0.02)
        before = len(ids(deltas))
        engine.weight_version = "v2"
        await asyncio.sleep(0.05)
        assert len(ids(deltas)) == before < 40
        await pool.resume()
        await listening
        await pool.close()
    assert ids(deltas) == list(range(5, 45))
    (runs,) = [delta.versions for delta in deltas if delta.versions]
    assert [run.version for run in runs] == ["v1", "v2"]
    assert abs(runs[0].tokens - before) <= 1
    assert len(engine.calls) == 1


async def test_a_pool_that_is_closed_while_it_is_paused_lets_its_engine_go() -> None:
    """A trainer that starts again finds an engine that samples, not one that nobody will ever let go."""
    engine = ScriptedEngine(Script(replies=((5,),)), SMALL)
    async with serving(engine, scale_out=True) as url:
        pool = Pool([VllmEngine(url)], 8)
        await pool.start()
        await pool.pause()
        assert not engine.gate.is_set()
        await pool.close()
        assert engine.gate.is_set()
