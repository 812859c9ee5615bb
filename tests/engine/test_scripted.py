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

from stenograph.core import Delta, Finish, Request, Sampling
from stenograph.engine.evidence import checked
from stenograph.engine.log import LoggedCall
from stenograph.engine.raw import MISREPORTS
from stenograph.engine.script import Fault, FaultKind, Rule, Script
from stenograph.engine.scripted import AT_START, MIDWAY, ScriptedEngine
from stenograph.errors import (
    CallerError,
    ConfigError,
    ContextLengthExceeded,
    EngineError,
    EngineUnavailable,
    EvidenceError,
)
from tests.engine.streams import END, finish, ids, logprobs, proven, request, small_tokenizer

SMALL = small_tokenizer()
CLOSE = SMALL.added[END]


async def said(engine: ScriptedEngine, asked: Request) -> list[Delta]:
    return await proven(engine.generate(asked), asked, engine.vocab_size)


async def text(engine: ScriptedEngine, asked: Request, choice: int = 0) -> str:
    return SMALL.decode(ids(await said(engine, asked), choice))


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
    await asyncio.sleep(0)
    assert not second.done()
    engine.gate.set()
    assert (await second).ids.tolist() == [6]
    await deltas.aclose()


async def test_the_same_script_says_the_same_again() -> None:
    asked = request(n=2, max_tokens=50)
    first, second = speaking(seed=4), speaking(seed=4)
    calls = [await said(first, asked), await said(first, asked)]
    assert [ids(one) for one in calls] == [ids(await said(second, asked)) for _ in calls]
    assert ids(calls[0], 0) != ids(calls[0], 1)
    assert ids(calls[0]) != ids(calls[1])
    assert ids(calls[0]) != ids(await said(speaking(seed=5), asked))


async def test_a_seed_in_the_request_decides_whatever_the_order() -> None:
    engine = speaking()
    asked, other = request(seed=3, max_tokens=50), request([9, 9], seed=3, max_tokens=50)
    first, between, again = await said(engine, asked), await said(engine, other), await said(engine, asked)
    assert (ids(first), logprobs(first)) == (ids(again), logprobs(again))
    assert ids(first) != ids(between)


async def test_alternatives_change_nothing_of_what_is_sampled() -> None:
    plain, ranked = await said(speaking(), request()), await said(speaking(), request(top=5))
    assert (ids(plain), logprobs(plain)) == (ids(ranked), logprobs(ranked))


async def test_a_turn_ends_with_the_first_stop_id() -> None:
    deltas = await said(speaking(replies=["the answer"]), request(stop_token_ids=(CLOSE, 5), max_tokens=50))
    assert ids(deltas)[-1] == CLOSE
    assert finish(deltas) == Finish("stop", CLOSE)


async def test_the_models_own_end_has_no_stop_reason() -> None:
    deltas = await said(speaking(replies=["the answer"], eos=CLOSE), request(max_tokens=50))
    assert (ids(deltas)[-1], finish(deltas)) == (CLOSE, Finish("stop"))


async def test_a_reply_is_cut_at_max_tokens_and_at_the_context() -> None:
    engine = speaking(replies=[(5,) * 100], max_model_len=10)
    deltas = await said(engine, request(max_tokens=4))
    assert (len(ids(deltas)), finish(deltas)) == (4, Finish("length"))
    assert len(ids(await said(engine, request(max_tokens=50)))) == 7
    with pytest.raises(ContextLengthExceeded):
        await said(engine, request(range(10)))


async def test_the_ids_of_a_stop_string_are_kept() -> None:
    engine = speaking(replies=["she sells sea shells"], cut=1.0)
    deltas = await said(engine, request(stop=("no", "sea"), max_tokens=50))
    assert SMALL.decode(ids(deltas)) == "she sells sea"
    assert finish(deltas) == Finish("stop", "sea")


async def test_min_tokens_holds_the_end_back() -> None:
    engine = speaking(replies=["sea"], eos=CLOSE, cut=0.0)
    deltas = await said(engine, request(stop=("sea",), min_tokens=30, max_tokens=60))
    assert len(ids(deltas)) > 30


async def test_ignore_eos_goes_on_to_the_limit() -> None:
    deltas = await said(speaking(eos=CLOSE), request(ignore_eos=True, max_tokens=300))
    assert (len(ids(deltas)), finish(deltas)) == (300, Finish("length"))


async def test_replies_go_round_by_session_and_by_choice() -> None:
    engine = speaking(replies=["one", "two", "three"])
    wide = request(n=2, max_tokens=50)
    other = msgspec.structs.replace(wide, session_id="other", n=1)
    heard = [await text(engine, wide, 1), await text(engine, wide, 0), await text(engine, other)]
    assert heard == ["two", "three", "one"]


async def test_rules_come_before_replies() -> None:
    call = '<tool_call>\n{"name": "search"}\n</tool_call>'
    engine = speaking(rules=[Rule(r"weather in \w+\W*$", call)], replies=["the answer"])
    asked = request(SMALL.encode("what is the weather in Paris?"), max_tokens=99, stop_token_ids=(CLOSE,))
    spoken = ids(await said(engine, asked))
    assert spoken[0] == SMALL.added["<tool_call>"]
    assert SMALL.decode(spoken) == call + END
    assert await text(engine, request(SMALL.encode("the weather in Paris is fine"), max_tokens=99)) == "the answer"


async def test_without_a_tokenizer_it_speaks_random_ids() -> None:
    engine = ScriptedEngine(Script(vocab_size=50, longest=200))
    spoken = ids(await said(engine, request(max_tokens=500)))
    assert len(set(spoken)) > 10
    assert max(spoken) < 50


@pytest.mark.parametrize("script", [Script(replies=("text",)), Script(rules=(Rule("a", "b"),))])
def test_texts_without_a_tokenizer_are_a_mistake(script: Script) -> None:
    with pytest.raises(ConfigError, match="needs a tokenizer"):
        ScriptedEngine(script)


async def test_versions_are_reported_as_they_change() -> None:
    engine = speaking(replies=[(5, 6)], weight_version="v1")
    async with aclosing(engine.generate(request())) as deltas:
        first = await anext(deltas)
        engine.weight_version = "v2"
        second = await anext(deltas)
    assert (first.weight_version, second.weight_version) == ("v1", "v2")


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
