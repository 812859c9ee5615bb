"""The fake is the measure of the house, so it is measured first."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import given

from stenograph.core import Delta, Finish, Request, Sampling, VersionRun
from stenograph.engine.evidence import checked
from stenograph.engine.log import LoggedCall
from stenograph.engine.raw import MISREPORTS
from stenograph.engine.script import Fault, FaultKind, Script
from stenograph.engine.scripted import AT_START, MIDWAY, ScriptedEngine
from stenograph.errors import (
    CallerError,
    EngineError,
    EngineUnavailable,
    EvidenceError,
)
from tests.engine.streams import END, finish, ids, logprobs, proven, request, small_tokenizer

SMALL = small_tokenizer()
CLOSE = SMALL.added[END]


async def said(engine: ScriptedEngine, asked: Request) -> list[Delta]:
    return await proven(engine.generate(asked), asked, engine.vocab_size)


def speaking(**script: Any) -> ScriptedEngine:
    return ScriptedEngine(Script(**script), SMALL)


samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 3]),
    seed=st.none() | st.integers(0, 9),
    max_tokens=st.integers(1, 60),
    min_tokens=st.integers(0, 5),
    stop=st.sampled_from([(), ("the",), ("is", "\n\n")]),
    stop_token_ids=st.sampled_from([(), (CLOSE,), (5, 6)]),
    ignore_eos=st.booleans(),
)
requests = st.builds(
    Request,
    id=st.just("r"),
    session_id=st.sampled_from("ab"),
    prompt=st.lists(st.integers(0, 255), min_size=1, max_size=30).map(lambda ids: np.array(ids, np.int32)),
    sampling=samplings,
    n=st.integers(1, 3),
    top_logprobs=st.sampled_from([0, 1, 5]),
)
scripts = st.builds(
    Script,
    seed=st.integers(0, 99),
    max_model_len=st.sampled_from([35, 8192]),
    eos=st.none() | st.just(CLOSE),
    replies=st.sampled_from([(), ("the answer", (5, 6, 7)), ("",)]),
    cut=st.sampled_from([0.0, 0.5, 1.0]),
    logprob_kind=st.sampled_from(["raw", "temperature", "processed"]),
    chunk=st.integers(1, 5),
)


@given(scripts, requests)
def test_what_it_says_is_evidence_and_stands_in_its_log(script: Script, asked: Request) -> None:
    async def check() -> None:
        engine = ScriptedEngine(script, SMALL)
        deltas = await said(engine, asked)
        (call,) = engine.calls
        assert call.prompt == asked.prompt.tolist()
        assert not call.aborted
        for choice, logged in enumerate(call.choices):
            assert list(logged.ids) == ids(deltas, choice)
            assert list(logged.logprobs) == logprobs(deltas, choice)
            assert Finish(logged.finish_reason or "abort", logged.stop_reason) == finish(deltas, choice)

    asyncio.run(check())


@pytest.mark.parametrize("kind", list(MISREPORTS))
@pytest.mark.parametrize("n", [1, 2])
async def test_every_misreport_is_refused(kind: FaultKind, n: int) -> None:
    engine = speaking(faults=[Fault(kind, call=1)], longest=5)
    assert await said(engine, request(n=n, stop_token_ids=(CLOSE,)))
    with pytest.raises(EvidenceError):
        await said(engine, request(n=n, stop_token_ids=(CLOSE,)))
    truth = engine.calls[1]
    assert all(isinstance(logprob, float) and logprob <= 0 for one in truth.choices for logprob in one.logprobs)
    assert [len(one.ids) for one in truth.choices] == [len(one.logprobs) for one in truth.choices]


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
async def test_every_failure_fails(kind: FaultKind, error: type[Exception]) -> None:
    engine = speaking(replies=[(5, 6, 7, 8)], faults=[Fault(kind, every=1)])
    with pytest.raises(error):
        await said(engine, request())
    (call,) = engine.calls
    assert list(call.choices[0].ids) == ([5, 6] if kind in MIDWAY else [])
    assert (call.choices[0].finish_reason, call.aborted) == (None, False)


def test_every_fault_is_of_some_sort() -> None:
    assert sorted([*AT_START, *MIDWAY, *MISREPORTS, FaultKind.HANG]) == sorted(FaultKind)


async def test_a_hanging_call_ends_when_the_caller_goes() -> None:
    engine = speaking(faults=[Fault(FaultKind.HANG, every=1)])
    waiting = asyncio.create_task(said(engine, request()))
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert engine.calls[0].aborted


async def test_a_call_that_is_left_alone_is_logged_as_aborted() -> None:
    engine = speaking(replies=[(5, 6, 7)])
    async with aclosing(checked(engine.generate(request()), request(), 1024)) as deltas:
        assert (await anext(deltas)).ids.tolist() == [5]
    (call,) = engine.calls
    assert (call.aborted, list(call.choices[0].ids)) == (True, [5])


async def test_the_log_is_written_before_the_last_delta_is_out() -> None:
    engine = speaking(replies=[(5, 6)])
    async with aclosing(engine.generate(request())) as deltas:
        await anext(deltas)
        assert not engine.calls
        assert (await anext(deltas)).finish
        assert engine.calls


async def test_the_log_is_a_file_too(tmp_path: Path) -> None:
    for _ in range(2):
        engine = ScriptedEngine(Script(replies=((5,),)), log=tmp_path / "log")
        await said(engine, request())
        await engine.close()
    lines = (tmp_path / "log").read_bytes().splitlines()
    assert [msgspec.json.decode(line, type=LoggedCall).choices for line in lines] == [engine.calls[0].choices] * 2


async def test_the_gate_holds_a_call_in_flight() -> None:
    engine = speaking(replies=[(5, 6)])
    deltas = engine.generate(request())
    await anext(deltas)
    engine.gate.clear()
    second = asyncio.ensure_future(anext(deltas))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not second.done()
    engine.gate.set()
    assert (await second).ids.tolist() == [6]
    await deltas.aclose()


async def test_versions_are_reported_as_they_change() -> None:
    engine = speaking(replies=[(5, 6)], weight_version="v1")
    async with aclosing(engine.generate(request())) as deltas:
        first = await anext(deltas)
        engine.weight_version = "v2"
        second = await anext(deltas)
    assert [delta.versions for delta in (first, second)] == [(VersionRun("v1", 1),), (VersionRun("v2", 1),)]


@pytest.mark.parametrize(("kind", "alternatives", "certain"), [("raw", 5, False), ("processed", 1, True)])
async def test_logprobs_are_of_their_kind(kind: Any, alternatives: int, certain: bool) -> None:
    engine = speaking(logprob_kind=kind, replies=[(5,) * 20])
    deltas = await said(engine, request(top=5, top_k=1, max_tokens=20))
    assert {len(row) for one in deltas for row in one.top or ()} == {alternatives}
    assert (set(logprobs(deltas)) == {0.0}) is certain


async def test_it_says_what_it_is() -> None:
    info = await speaking(model="m", max_model_len=99, logprob_kind="temperature").start()
    assert (info.model, info.max_model_len, info.logprob_kind) == ("m", 99, "temperature")
    assert info.vocab_size == SMALL.vocab_size
    assert info.supports == set(Sampling.__struct_fields__)
