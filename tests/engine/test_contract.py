"""What every adapter does alike, whatever its engine speaks: the scripted engine behind a fake of each wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from stenograph.core import Delta, Finish, Request
from stenograph.engine.engine import Engine
from stenograph.engine.evidence import checked
from stenograph.engine.given import GivenEngine
from stenograph.engine.llama_http import LlamaHttpEngine
from stenograph.engine.raw import MISREPORTS
from stenograph.engine.script import Fault, FaultKind, Script
from stenograph.engine.scripted import MAX_TOP_LOGPROBS, ScriptedEngine
from stenograph.engine.scripted_server import ScriptedServer
from stenograph.engine.sglang import SglangEngine
from stenograph.engine.vllm import VllmEngine
from stenograph.errors import CallerError, ContextLengthExceeded, EngineError, EngineTimeout, EngineUnavailable
from tests.engine.fakes import FakeIncremental, FakeLlama, FakeSglang
from tests.engine.mine import Mine
from tests.engine.servers import listening, plain, relaying, saying
from tests.engine.streams import END, finish, ids, logprobs, proven, request, small_tokenizer

SMALL = small_tokenizer()
CLOSE = SMALL.added[END]
SILENCE = 1.0
"""Seconds after which a test gives a mute engine up. Every other test waits as long as a busy machine makes it."""
PATIENCE = 60.0


class Adapter(Protocol):
    @property
    def indexed(self) -> bool:
        """Choices of one call share a stream, and each chunk names its own."""

    def opened(self, engine: ScriptedEngine, silence: float = PATIENCE) -> AbstractAsyncContextManager[Engine]: ...


@dataclass(frozen=True)
class OverHttp:
    """An adapter over its engine's wire, behind which the scripted engine sits."""

    over: Callable[[str, float], Engine]
    """By its address, and the silence that is borne."""
    application: Callable[[ScriptedEngine], Any]
    indexed: bool = False

    @asynccontextmanager
    async def opened(self, engine: ScriptedEngine, silence: float = PATIENCE) -> AsyncIterator[Engine]:
        async with listening(self.application(engine)) as url:
            over = self.over(url, silence)
            try:
                yield over
            finally:
                await over.close()


class Given:
    """No wire at all."""

    indexed = False

    @asynccontextmanager
    async def opened(self, engine: ScriptedEngine, silence: float = PATIENCE) -> AsyncIterator[Engine]:
        script = engine.script
        yield GivenEngine(
            Mine(engine),
            model=script.model,
            max_model_len=script.max_model_len,
            logprob_kind=script.logprob_kind,
            max_top_logprobs=MAX_TOP_LOGPROBS,
        )


OVER_HTTP: dict[str, Adapter] = {
    "vllm": OverHttp(
        lambda url, timeout: VllmEngine(url, timeout=timeout),
        lambda engine: ScriptedServer(engine).application,
        indexed=True,
    ),
    "sglang": OverHttp(
        lambda url, timeout: SglangEngine(url, timeout=timeout), lambda engine: FakeSglang(engine).application
    ),
    "sglang-incremental": OverHttp(
        lambda url, timeout: SglangEngine(url, timeout=timeout), lambda engine: FakeIncremental(engine).application
    ),
    "llamacpp": OverHttp(
        lambda url, timeout: LlamaHttpEngine(url, SMALL, timeout=timeout), lambda engine: FakeLlama(engine).application
    ),
}
EVERY: dict[str, Adapter] = OVER_HTTP | {"given": Given()}


@pytest.fixture(params=list(EVERY.values()), ids=list(EVERY))
def adapter(request: pytest.FixtureRequest) -> Adapter:
    chosen: Adapter = request.param
    return chosen


@pytest.fixture(params=list(OVER_HTTP.values()), ids=list(OVER_HTTP))
def over_http(request: pytest.FixtureRequest) -> Adapter:
    chosen: Adapter = request.param
    return chosen


@asynccontextmanager
async def started(adapter: Adapter, engine: ScriptedEngine, silence: float = PATIENCE) -> AsyncIterator[Engine]:
    async with adapter.opened(engine, silence) as over:
        await over.start()
        engine.calls.clear()
        yield over


async def said(over: Engine, asked: Request) -> list[Delta]:
    return await proven(over.generate(asked), asked, SMALL.vocab_size)


async def said_to_the_end(deltas: AsyncIterator[Delta]) -> list[Delta]:
    return [one async for one in deltas]


def told(deltas: list[Delta], n: int) -> list[tuple[list[int], list[float]]]:
    return sorted((ids(deltas, choice), logprobs(deltas, choice)) for choice in range(n))


def logged(engine: ScriptedEngine) -> list[tuple[list[int], list[float]]]:
    """The engine's own word. Where each choice is a call of its own, their order is the network's."""
    choices = [choice for call in engine.calls for choice in call.choices]
    return sorted((list(choice.ids), list(choice.logprobs)) for choice in choices)


@pytest.mark.parametrize(("n", "top", "kind"), [(1, 0, "raw"), (1, 2, "raw"), (3, 2, "temperature")])
async def test_it_says_what_its_engine_said(adapter: Adapter, n: int, top: int, kind: Any) -> None:
    engine = ScriptedEngine(Script(seed=4, chunk=2, logprob_kind=kind, eos=CLOSE), SMALL)
    async with started(adapter, engine) as over:
        deltas = await said(over, request(n=n, top=top, max_tokens=30, temperature=0.5))
    assert told(deltas, n) == logged(engine)
    assert {finish(deltas, choice) for choice in range(n)} <= {Finish("stop"), Finish("length")}
    assert all((one.top is not None) == bool(top) for one in deltas if len(one.ids))


@pytest.mark.parametrize("kind", ["raw", "temperature", "processed"])
async def test_a_start_finds_out_what_is_there(adapter: Adapter, kind: Any) -> None:
    engine = ScriptedEngine(Script(model="policy", max_model_len=77, logprob_kind=kind, eos=CLOSE), SMALL)
    async with adapter.opened(engine) as over:
        info = await over.start()
        assert await over.healthy()
    assert (info.model, info.max_model_len, info.logprob_kind) == ("policy", 77, kind)


async def test_length_is_a_length(adapter: Adapter) -> None:
    async with started(adapter, ScriptedEngine(Script(replies=((5, 6, 7, 8),) * 2, eos=CLOSE), SMALL)) as over:
        deltas = await said(over, request(max_tokens=3))
    assert (ids(deltas), finish(deltas)) == ([5, 6, 7], Finish("length"))


async def test_a_stop_id_is_the_last_token(adapter: Adapter) -> None:
    async with started(adapter, ScriptedEngine(Script(replies=((5, 6, 7, 8),), eos=CLOSE), SMALL)) as over:
        deltas = await said(over, request(max_tokens=30, stop_token_ids=(7,)))
    assert (ids(deltas), finish(deltas)) == ([5, 6, 7], Finish("stop", 7))


async def test_the_models_own_end_has_no_reason(adapter: Adapter) -> None:
    async with started(adapter, ScriptedEngine(Script(replies=((5, 6),), eos=CLOSE), SMALL)) as over:
        deltas = await said(over, request(max_tokens=30))
    assert (ids(deltas), finish(deltas)) == ([5, 6, CLOSE], Finish("stop", None))


async def test_the_tokens_of_a_stop_string_are_there(adapter: Adapter) -> None:
    spoken = SMALL.encode("the answer and the question")
    async with started(adapter, ScriptedEngine(Script(replies=(tuple(spoken),), eos=CLOSE), SMALL)) as over:
        deltas = await said(over, request(max_tokens=30, stop=("and",)))
    sampled = ids(deltas)
    assert sampled == spoken[: len(sampled)]
    assert "and" in SMALL.decode(sampled)
    assert "and" not in SMALL.decode(sampled[:-1])
    assert finish(deltas) == Finish("stop", "and")


@pytest.mark.parametrize("kind", list(MISREPORTS))
async def test_every_misreport_is_refused(adapter: Adapter, kind: FaultKind) -> None:
    if kind is FaultKind.WRONG_CHOICE and not adapter.indexed:
        return
    engine = ScriptedEngine(Script(faults=(Fault(kind, every=1),), chunk=3, longest=8, eos=CLOSE), SMALL)
    async with started(adapter, engine) as over:
        with pytest.raises(EngineError):
            await said(over, request(n=2))


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
async def test_every_failure_is_translated(adapter: Adapter, kind: FaultKind, error: type[Exception]) -> None:
    async with started(adapter, ScriptedEngine(Script(faults=(Fault(kind, every=1),), eos=CLOSE), SMALL)) as over:
        with pytest.raises(error):
            await said(over, request(max_tokens=30))


async def test_silence_at_the_beginning_is_a_timeout(over_http: Adapter) -> None:
    engine = ScriptedEngine(Script(faults=(Fault(FaultKind.HANG, every=1),), eos=CLOSE), SMALL)
    async with started(over_http, engine, SILENCE) as over:
        with pytest.raises(EngineTimeout):
            await said(over, request())


async def test_silence_in_the_middle_is_a_timeout(over_http: Adapter) -> None:
    engine = ScriptedEngine(Script(replies=((5,) * 100,), delay=0.01, eos=CLOSE), SMALL)
    async with (
        started(over_http, engine, SILENCE) as over,
        aclosing(over.generate(request(max_tokens=100))) as deltas,
    ):
        await anext(deltas)
        engine.gate.clear()
        with pytest.raises(EngineTimeout):
            await said_to_the_end(deltas)


async def test_a_slow_engine_is_no_fault(adapter: Adapter) -> None:
    engine = ScriptedEngine(Script(replies=((5,) * 8,), delay=SILENCE / 6, eos=CLOSE), SMALL)
    async with started(adapter, engine, SILENCE) as over:
        assert ids(await said(over, request(max_tokens=8))) == [5] * 8


@pytest.mark.parametrize("n", [1, 2])
async def test_closing_early_aborts_every_choice(over_http: Adapter, n: int) -> None:
    engine = ScriptedEngine(Script(replies=((5,) * 1000,), eos=CLOSE), SMALL)
    asked = request(n=n, max_tokens=1000)
    async with asyncio.timeout(10), started(over_http, engine) as over:
        async with aclosing(checked(over.generate(asked), asked, SMALL.vocab_size)) as deltas:
            heard: set[int] = set()
            while len(heard) < n:
                heard.add((await anext(deltas)).choice)
            engine.gate.clear()
        while sum(len(call.choices) for call in engine.calls) < n:  # noqa: ASYNC110 (a log that tells nobody)
            await asyncio.sleep(0)
    assert all(call.aborted for call in engine.calls)


async def test_what_does_not_fit_is_an_overflow(over_http: Adapter) -> None:
    async with started(over_http, ScriptedEngine(Script(max_model_len=20, eos=CLOSE), SMALL)) as over:
        with pytest.raises(ContextLengthExceeded):
            await said(over, request(range(20)))


async def test_a_foreign_id_never_leaves(adapter: Adapter) -> None:
    engine = ScriptedEngine(Script(eos=CLOSE), SMALL)
    async with started(adapter, engine) as over:
        with pytest.raises(CallerError, match="outside the vocabulary"):
            await said(over, request([99999]))
    assert not engine.calls


def redirected(over: Any, url: str) -> None:
    """To another server, which has only this one answer."""
    over._http.root = url


async def test_lost_at_any_byte_it_is_an_answer_or_an_error(over_http: Adapter) -> None:
    """Never half of one: the bytes of a whole answer, cut at each."""
    engine = ScriptedEngine(Script(replies=((5, 6),), eos=CLOSE), SMALL)
    asked = request(max_tokens=2)
    async with started(over_http, engine) as over, saying(b"") as wire:
        async with relaying(over._http.root) as relay:  # type: ignore[attr-defined]
            redirected(over, relay.url)
            whole = told(await said(over, asked), 1)
        assert whole[0][0] == [5, 6]
        sent = bytes(relay.heard)
        redirected(over, wire.url)
        for cut in range(len(sent) + 1):
            wire.answer = sent[:cut]
            try:
                answer = told(await said(over, asked), 1)
            except EngineError:
                assert cut < len(sent)
            else:
                assert cut > sent.rindex(b"6")
                assert answer == whole


@pytest.mark.parametrize(
    "status", ["400 Bad", "401 No", "404 None", "422 Odd", "429 Full", "500 Oh", "502 Bad", "503 No"]
)
async def test_every_status_is_translated(over_http: Adapter, status: str) -> None:
    async with started(over_http, ScriptedEngine(Script(eos=CLOSE), SMALL)) as over, saying(plain(status, b"")) as wire:
        redirected(over, wire.url)
        with pytest.raises(CallerError if status[:3] in ("400", "422", "429") else EngineError):
            await said(over, request())
