"""Law 6: a call is one turn (or n of one call), or it is none at all and counts as an attempt."""

from __future__ import annotations

import asyncio

import pytest

from stenograph.core import JSON
from stenograph.engine.script import FaultKind, Script
from stenograph.errors import (
    EngineTimeout,
    EngineUnavailable,
    Overloaded,
    StenographError,
)
from stenograph.store.store import Store
from tests.laws.record import snapshot
from tests.stage.models import REFUSED, Model
from tests.stage.stage import Stage, user
from tests.stage.stores import Load

HELLO = [user("hello")]
FAULTS = {
    FaultKind.FAIL_AT_START: (503, "engine_unavailable", "engine_error"),
    FaultKind.REFUSE: (400, None, "refused"),
    FaultKind.CRASH: (502, None, "engine_error"),
    FaultKind.FAIL_MIDWAY: (502, None, "engine_error"),
    FaultKind.CUT: (502, None, "engine_error"),
    FaultKind.HALF_LINE: (502, None, "engine_error"),
}
"""Status, code, and as which attempt it counts. Those that misreport are law 2's."""
BODIES: dict[str, tuple[JSON, tuple[int, str | None, str]]] = {
    "template": ({"messages": [user(REFUSED)]}, (400, "template_refused", "refused")),
    "overflow": ({"messages": [user("word " * 9000)]}, (400, "context_length_exceeded", "context_overflow")),
    "no messages": ({"messages": []}, (400, None, "refused")),
    "no such role": ({"messages": [{"role": "oracle", "content": "x"}]}, (400, None, "refused")),
    "unsupported": ({"messages": HELLO, "best_of": 2}, (400, "unsupported_parameter", "refused")),
}


async def require_nothing_left(stage: Stage, before: dict[str, bytes], attempt: str) -> None:
    assert snapshot(stage, ["s"]) == before
    attempts = (await stage.get("/sessions/s"))["attempts"]
    assert {name: count for name, count in attempts.items() if count} == {attempt: 1}
    assert f'stenograph_attempts_total{{reason="{attempt}"}} 1.0' in (await stage.http.get("/metrics")).text
    assert (await stage.say("s", HELLO)).complete


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_engine_fails(model: Model, opened: tuple[Store, Load], fault: FaultKind) -> None:
    status, code, attempt = FAULTS[fault]
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        await stage.say("s", HELLO)
        before = snapshot(stage, ["s"])
        with stage.watched.faulty(fault):
            answer = await stage.say("s", HELLO, n=2)
        assert answer.error is not None
        assert (answer.status, answer.error["code"]) == (status, code)
        await require_nothing_left(stage, before, attempt)


@pytest.mark.parametrize("what", BODIES)
async def test_the_call_is_refused(model: Model, opened: tuple[Store, Load], what: str) -> None:
    fields, (status, code, attempt) = BODIES[what]
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        await stage.say("s", HELLO)
        before = snapshot(stage, ["s"])
        answer = await stage.say("s", **fields)
        assert answer.error is not None
        assert (answer.status, answer.error["code"]) == (status, code)
        await require_nothing_left(stage, before, attempt)
        assert len(stage.watched.calls) == 2


@pytest.mark.parametrize("error", [Overloaded("full", retry_after=7), EngineTimeout("slow"), EngineUnavailable("gone")])
async def test_the_engine_says_what_is_wrong(model: Model, opened: tuple[Store, Load], error: StenographError) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        await stage.say("s", HELLO)
        before = snapshot(stage, ["s"])
        stage.watched.refusal = error
        answer = await stage.say("s", HELLO)
        stage.watched.refusal = None
        assert answer.status == error.status
        await require_nothing_left(stage, before, "refused" if isinstance(error, Overloaded) else "engine_error")


async def test_a_bug_of_ours(model: Model, opened: tuple[Store, Load]) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        await stage.say("s", HELLO)
        before = snapshot(stage, ["s"])
        stage.watched.refusal = ZeroDivisionError("nobody thought of it")
        answer = await stage.say("s", HELLO)
        stage.watched.refusal = None
        assert (answer.status, (answer.error or {})["code"]) == (500, "internal_error")
        await require_nothing_left(stage, before, "gateway_error")


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_the_caller_goes_away(model: Model, opened: tuple[Store, Load], stream: bool) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        await stage.say("s", HELLO)
        before = snapshot(stage, ["s"])
        stage.watched.forget()
        with stage.watched.faulty(FaultKind.HANG):
            call = asyncio.create_task(stage.say("s", HELLO, stream=stream))
            request_id = await stage.watched.arrived.get()
            call.cancel()
            await stage.settled()
        assert stage.watched.logged(request_id).aborted
        await require_nothing_left(stage, before, "disconnected")


async def test_n_choices_are_siblings_of_one_call(model: Model, opened: tuple[Store, Load]) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        answer = await stage.say("s", HELLO, n=3)
        turns = list(stage.tree("s").turns.values())
        assert [turn.id for turn in turns] == [choice.turn_id for choice in answer.choices]
        assert len({turn.call.id for turn in turns}) == 1
        assert len(stage.watched.calls) == 1


async def test_four_equal_calls_are_four_samples(model: Model, opened: tuple[Store, Load]) -> None:
    store, load = opened
    async with Stage(model, store, Script(longest=30), load=load) as stage:
        answers = await asyncio.gather(*(stage.say("s", HELLO) for _ in range(4)))
        assert len({answer.turn_id for answer in answers}) == 4
        assert len(stage.watched.calls) == 4
        assert len(stage.tree("s").turns) == 4
        assert len({answer.choices[0].token_ids for answer in answers}) == 4
