"""Stopped and continued: the same tokens as if nothing had been, none twice, none missing, and their logprobs."""

from __future__ import annotations

import asyncio
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import given

from stenograph.core import Delta, Guide
from stenograph.engine import generation
from stenograph.engine.brake import Brake
from stenograph.engine.gate import Gate
from stenograph.engine.generation import Generation
from stenograph.engine.member import Member
from stenograph.engine.rest import continues_alike, rest
from stenograph.errors import EngineError, EngineUnavailable
from stenograph.origin import Origins, Weights
from tests.engine.chain import EOS, Chain, Halting, said
from tests.engine.streams import finish, ids, logprobs, proven, request, small_tokenizer

STATEFUL: list[dict[str, Any]] = [
    {"seed": 3},
    {"presence_penalty": 0.5},
    {"frequency_penalty": 0.5},
    {"repetition_penalty": 1.5},
    {"guide": Guide("regex", "[a-z]+")},
]


async def turns_of_the_loop(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def stopped_and_let_go(member: Member, engine: Chain, pauses: list[tuple[int, int]]) -> None:
    for before, meanwhile in pauses:
        await turns_of_the_loop(before)
        await member.pause()
        assert engine.under_way == 0
        await turns_of_the_loop(meanwhile)
        await member.resume()


@given(
    prompt=st.lists(st.integers(0, 63), min_size=1, max_size=6),
    n=st.integers(1, 3),
    limit=st.integers(1, 16),
    pauses=st.lists(st.tuples(st.integers(0, 25), st.integers(0, 5)), max_size=4),
)
def test_a_pause_anywhere_changes_no_token(
    prompt: list[int], n: int, limit: int, pauses: list[tuple[int, int]]
) -> None:
    async def play() -> tuple[list[Delta], Chain]:
        engine = Chain()
        member = Member(engine, engine.info, Gate(8, 8))
        asked = request(prompt, n=n, max_tokens=limit)
        stopping = asyncio.create_task(stopped_and_let_go(member, engine, pauses))
        deltas = await proven(member.generate(asked, None), asked)
        await stopping
        return deltas, engine

    deltas, engine = asyncio.run(play())
    wanted, values, reason = said(prompt, limit)
    for choice in range(n):
        assert ids(deltas, choice) == wanted
        assert logprobs(deltas, choice) == pytest.approx(values)
        ended = finish(deltas, choice)
        assert ended is not None
        assert ended.reason == reason
    assert len({one.id for one in engine.requests}) == len(engine.requests)
    for one in engine.requests:
        assert one.prompt.tolist()[: len(prompt)] == prompt
        assert len(one.prompt) - len(prompt) + (one.sampling.max_tokens or 0) == limit
    assert all(delta.by == engine.info for delta in deltas)


async def test_only_the_first_request_says_what_was_cached() -> None:
    engine = Chain()
    brake = Brake()
    asked = request([1, 2, 3, 4], max_tokens=12)
    generating = Generation(engine, asked, brake, None).deltas()
    got = [await anext(generating)]
    brake.close()
    brake.pull()
    rest = asyncio.create_task(_all(generating))
    await brake.idle.wait()
    brake.release()
    got += await rest
    assert [delta.cached_tokens for delta in got if delta.cached_tokens is not None] == []
    assert len(engine.requests) == 2


async def _all(deltas: Any) -> list[Delta]:
    return [delta async for delta in deltas]


@pytest.mark.parametrize("sampling", STATEFUL, ids=lambda sampling: next(iter(sampling)))
async def test_what_cannot_go_on_alike_is_waited_for(sampling: dict[str, Any]) -> None:
    engine = Chain()
    member = Member(engine, engine.info, Gate(8, 8))
    engine.patience.clear()
    asked = request([1, 2, 3], max_tokens=8, **sampling)
    deltas = member.generate(asked, None)
    first = asyncio.create_task(anext(deltas))
    await turns_of_the_loop(5)
    engine.patience.set()
    got = [await first]
    pausing = asyncio.create_task(member.pause())
    got += [delta async for delta in deltas]
    await pausing
    assert ids(got) == said([1, 2, 3], 8)[0]
    assert len(engine.requests) == 1


async def test_a_seed_is_no_hindrance_before_the_first_token() -> None:
    """Nothing was sampled, so the request is sent again whole, with all its choices."""
    engine = Chain()
    member = Member(engine, engine.info, Gate(8, 8))
    engine.patience.clear()
    asked = request([1, 2, 3], n=2, seed=5)
    answer = asyncio.create_task(_all(member.generate(asked, None)))
    await turns_of_the_loop(5)
    await member.pause()
    assert engine.under_way == 0
    engine.patience.set()
    await member.resume()
    assert ids(await answer, 1) == said([1, 2, 3], 8)[0]
    assert [one.n for one in engine.requests] == [2, 2]


def test_a_choice_that_is_sent_again_alone_keeps_its_own_seed() -> None:
    """The second of two is the first of its own request: with the seed of the first it would repeat its words."""
    again = [rest(request(n=3, seed=5), choice, [], 1).sampling.seed for choice in range(3)]
    assert again == [5, 6, 7]
    assert rest(request(n=3), 2, [8], 1).sampling.seed is None


async def test_an_engine_that_fails_at_its_release_keeps_nobody_paused() -> None:
    class Sick(Halting):
        async def release(self) -> None:
            raise EngineError("HTTP 500")

    engine = Sick()
    member = Member(engine, engine.info, Gate(8, 8))
    await member.pause()
    with pytest.raises(EngineError):
        await member.resume()
    assert ids(await _all(member.generate(request([1, 2, 3]), None))) == said([1, 2, 3], 8)[0]


def test_a_stop_string_under_way_is_waited_out() -> None:
    tokenizer = small_tokenizer()
    stopping = request([1], stop=("shells",)).sampling
    assert not continues_alike(stopping, tokenizer.encode("she sells sea shel"), tokenizer)
    assert not continues_alike(stopping, tokenizer.encode("on the s"), tokenizer)
    assert continues_alike(stopping, tokenizer.encode("on the shore"), tokenizer)
    assert not continues_alike(stopping, tokenizer.encode("on the shore"), None)
    assert not continues_alike(stopping, tokenizer.encode("hm 😀")[:-1], tokenizer)


async def test_an_engine_that_holds_itself_is_not_broken_off() -> None:
    engine = Halting()
    engine.holds_itself = True
    member = Member(engine, engine.info, Gate(8, 8))
    deltas = member.generate(request([1, 2, 3], max_tokens=8), None)
    got = [await anext(deltas)]
    await member.pause()
    assert engine.under_way == 1
    rest = asyncio.create_task(_all(deltas))
    await turns_of_the_loop(10)
    assert not rest.done()
    await member.resume()
    got += await rest
    assert ids(got) == said([1, 2, 3], 8)[0]
    assert len(engine.requests) == 1


async def test_an_engine_may_go_away_while_it_is_paused() -> None:
    """It is restarted with new weights: what was under way goes on from its tokens."""
    engine = Halting()
    engine.holds_itself = True
    member = Member(engine, engine.info, Gate(8, 8))
    deltas = member.generate(request([1, 2, 3], max_tokens=8), None)
    got = [await anext(deltas)]
    rest = asyncio.create_task(_all(deltas))
    await member.pause()
    engine.failure = EngineUnavailable("restarted")
    engine.patience.set()
    await turns_of_the_loop(10)
    assert engine.under_way == 0
    assert not rest.done()
    engine.failure = None
    await member.resume()
    got += await rest
    assert ids(got) == said([1, 2, 3], 8)[0]


async def test_an_engine_that_is_not_there_keeps_nobody_paused() -> None:
    class Gone(Halting):
        async def hold(self) -> bool:
            raise EngineUnavailable("gone")

        async def release(self) -> None:
            raise EngineUnavailable("gone")

    engine = Gone()
    member = Member(engine, engine.info, Gate(8, 8))
    await member.pause()
    assert (member.paused, member.up) == (True, False)
    await member.resume()
    assert not member.paused


async def test_an_engine_that_goes_away_otherwise_is_an_error() -> None:
    engine = Chain()
    member = Member(engine, engine.info, Gate(8, 8))
    deltas = member.generate(request([1, 2, 3], max_tokens=8), None)
    await anext(deltas)
    engine.failure = EngineUnavailable("killed")
    with pytest.raises(EngineUnavailable):
        await _all(deltas)


async def test_paused_behind_our_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """An abort that came of the engine's own pause is not the end of a turn, and says of which weights it was."""
    monkeypatch.setattr(generation, "LOOK_SECONDS", 0.001)
    engine = Halting()
    member = Member(engine, engine.info, Gate(8, 8))
    deltas = member.generate(request([1, 2, 3], n=2, max_tokens=8), None)
    got = [await anext(deltas) for _ in range(5)]
    engine.halted = True
    rest = asyncio.create_task(_all(deltas))
    await asyncio.sleep(0.01)
    assert not rest.done()
    assert engine.under_way == 0
    engine.halted, engine.version = False, "2"
    got += await rest
    for choice in range(2):
        assert ids(got, choice) == said([1, 2, 3], 8)[0]
        before = len(engine.requests[1 + choice].prompt) - 3
        assert _versions(got, choice) == ["1"] * before + ["2"] * (8 - before)


def _versions(deltas: list[Delta], choice: int) -> list[str | None]:
    """Of each token, by the latest word on it."""
    origins = Origins(Weights())
    for one in deltas:
        if one.choice == choice:
            origins.take(one)
    told = np.concatenate([one.ids for one in deltas if one.choice == choice])
    return [part.weight_version for part in origins.parts(told, np.zeros(len(told), np.float32)) for _ in part.ids]


async def test_any_other_abort_is_one() -> None:
    class Aborting(Halting):
        async def held(self) -> bool:
            return False

    engine = Aborting()
    engine.halted = True
    asked = request([1, 2, 3], n=2)
    got = await proven(Member(engine, engine.info, Gate(8, 8)).generate(asked, None), asked)
    assert [delta.finish.reason for delta in got if delta.finish] == ["abort", "abort"]
    assert len(engine.requests) == 1


async def test_a_resume_ends_a_pause_that_still_waits() -> None:
    engine = Chain()
    member = Member(engine, engine.info, Gate(8, 8))
    deltas = member.generate(request([1, 2, 3], seed=1), None)
    got = [await anext(deltas)]
    engine.patience.clear()
    pausing = asyncio.create_task(member.pause())
    await turns_of_the_loop(5)
    assert member.paused
    await member.resume()
    await pausing
    engine.patience.set()
    got += await _all(deltas)
    assert ids(got) == said([1, 2, 3], 8)[0]


async def test_what_begins_under_a_pause_waits_for_its_end() -> None:
    engine = Chain()
    member = Member(engine, engine.info, Gate(8, 8))
    await member.pause()
    answer = asyncio.create_task(_all(member.generate(request([EOS]), None)))
    await turns_of_the_loop(10)
    assert engine.requests == []
    await member.resume()
    assert ids(await answer) == said([EOS], 8)[0]


async def test_a_caller_that_leaves_under_a_pause_leaves_nothing() -> None:
    engine = Chain()
    member = Member(engine, engine.info, Gate(1, 8))
    deltas = member.generate(msgspec.structs.replace(request([1, 2, 3])), None)
    await anext(deltas)
    answer = asyncio.create_task(_all(deltas))
    await member.pause()
    answer.cancel()
    await asyncio.wait([answer])
    assert (engine.under_way, member.load, dict(member.sessions)) == (0, 0, {})
    await member.resume()
