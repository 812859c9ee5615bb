from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from stenograph.core import Delta, Request
from stenograph.engine import pool as pools
from stenograph.engine.pool import Pool
from stenograph.errors import (
    CallerError,
    ConfigError,
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    EvidenceError,
    Overloaded,
    StenographError,
)
from tests.engine.chain import Chain
from tests.engine.streams import request


@asynccontextmanager
async def started(*engines: Chain, in_flight: int = 8) -> AsyncIterator[Pool]:
    pool = Pool(engines, in_flight)
    await pool.start()
    try:
        yield pool
    finally:
        await pool.close()
        assert all(engine.closed for engine in engines)


def of(session_id: str, engine: str | None = None) -> Request:
    return msgspec.structs.replace(request(), session_id=session_id, engine=engine)


async def served(pool: Pool, asked: Request) -> str:
    deltas = [delta async for delta in pool.generate(asked)]
    (name,) = {delta.by.name for delta in deltas if delta.by}
    return name


async def test_a_session_stays_with_its_engine() -> None:
    async with started(Chain("a"), Chain("b")) as pool:
        assert [await served(pool, of("s", "b")) for _ in range(3)] == ["b", "b", "b"]
        assert [await served(pool, of("s", "a")) for _ in range(3)] == ["a", "a", "a"]


async def test_the_first_calls_of_a_session_go_together() -> None:
    """Sub-agents that begin at once share a prefix, and none of them has a turn yet that says where."""
    first, second = Chain("a"), Chain("b")
    first.patience.clear()
    second.patience.clear()
    async with started(first, second) as pool:
        calls = [asyncio.create_task(served(pool, of("s"))) for _ in range(3)]
        await asyncio.sleep(0.01)
        first.patience.set()
        second.patience.set()
        assert len(set(await asyncio.gather(*calls))) == 1


async def test_new_sessions_go_to_the_least_loaded() -> None:
    engines = [Chain("a"), Chain("b"), Chain("c")]
    for engine in engines:
        engine.patience.clear()
    async with started(*engines) as pool:
        calls = [asyncio.create_task(served(pool, of(f"s{number}"))) for number in range(6)]
        await asyncio.sleep(0.01)
        assert [len(engine.requests) for engine in engines] == [2, 2, 2]
        for engine in engines:
            engine.patience.set()
        await asyncio.gather(*calls)


@pytest.mark.parametrize(
    "error", [EngineUnavailable("gone"), EngineTimeout("mute"), EngineError("500"), Overloaded("full")]
)
async def test_before_the_first_token_another_engine_takes_it(error: StenographError) -> None:
    bad, good = Chain("bad"), Chain("good")
    bad.failure = error
    async with started(bad, good) as pool:
        assert await served(pool, of("s", "bad")) == "good"
        assert pool.members[0].up is not isinstance(error, EngineUnavailable)
        assert (len(bad.requests), len(good.requests)) == (1, 1)


@pytest.mark.parametrize("error", [EvidenceError("a lie"), CallerError("your fault")])
async def test_some_errors_are_the_answer(error: StenographError) -> None:
    bad, good = Chain("bad"), Chain("good")
    bad.failure = error
    async with started(bad, good) as pool:
        with pytest.raises(type(error)):
            await served(pool, of("s", "bad"))
        assert good.requests == []


async def test_behind_the_first_token_nothing_is_tried_again() -> None:
    bad, good = Chain("bad"), Chain("good")
    async with started(bad, good) as pool:
        deltas = pool.generate(of("s", "bad"))
        await anext(deltas)
        bad.failure = EngineUnavailable("killed")
        with pytest.raises(EngineUnavailable):
            async for _ in deltas:
                pass
        assert good.requests == []
        assert await served(pool, of("s", "bad")) == "good"


async def test_where_all_fail_the_last_one_says_why() -> None:
    engines = [Chain("a"), Chain("b")]
    for engine in engines:
        engine.failure = EngineUnavailable(f"{engine.info.name} is gone")
    async with started(*engines) as pool:
        with pytest.raises(EngineUnavailable):
            await served(pool, of("s"))
        assert [len(engine.requests) for engine in engines] == [1, 1]


async def test_an_engine_that_raises_when_it_is_asked_is_down_and_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A trainer's own may raise anything: the actor that held it has died."""
    monkeypatch.setattr(pools, "LOOK_SECONDS", 0.001)

    class Actor(Chain):
        alive = False

        async def healthy(self) -> bool:
            if not self.alive:
                raise ValueError("the actor died")
            return True

    engine = Actor()
    async with started(engine) as pool, asyncio.timeout(10):
        while pool.members[0].up:  # noqa: ASYNC110 (a pool that tells nobody)
            await asyncio.sleep(0.001)
        assert "the actor died" in caplog.text
        engine.alive = True
        while not pool.members[0].up:  # noqa: ASYNC110 (a pool that tells nobody)
            await asyncio.sleep(0.001)


async def test_who_is_down_is_looked_at_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "LOOK_SECONDS", 0.001)
    first, second = Chain("a"), Chain("b")
    async with started(first, second) as pool:
        first.well = False
        await asyncio.sleep(0.02)
        assert [member.up for member in pool.members] == [False, True]
        assert await served(pool, of("s", "a")) == "b"
        first.well = True
        await asyncio.sleep(0.02)
        assert await served(pool, of("s", "a")) == "a"
        assert await pool.healthy()
        first.well = second.well = False
        assert not await pool.healthy()


async def test_full_is_429_and_only_then() -> None:
    engine = Chain()
    engine.patience.clear()
    async with started(engine, in_flight=1) as pool:
        pool.members[0].gate._room = 1
        calls = [asyncio.create_task(served(pool, of(f"s{number}"))) for number in range(2)]
        await asyncio.sleep(0.01)
        with pytest.raises(Overloaded):
            await served(pool, of("s3"))
        engine.patience.set()
        await asyncio.gather(*calls)


async def test_what_it_says_of_itself_holds_of_every_member() -> None:
    pool = Pool(
        [
            Chain("a", max_model_len=100, max_top_logprobs=20, vocab_size=None),
            Chain("b", max_model_len=90, supports=frozenset({"temperature"}), max_top_logprobs=5),
        ],
        8,
    )
    info = await pool.start()
    await pool.close()
    assert (info.max_model_len, info.supports, info.max_top_logprobs) == (90, frozenset({"temperature"}), 5)
    assert info.vocab_size == 64


@pytest.mark.parametrize(
    ("facts", "words"),
    [({"logprob_kind": "processed"}, "cannot be mixed"), ({"model": "other"}, "one model")],
)
async def test_what_does_not_go_together_is_refused(facts: dict[str, Any], words: str) -> None:
    pool = Pool([Chain("a"), Chain("b", **facts)], 8)
    with pytest.raises(ConfigError, match=words):
        await pool.start()
    await pool.close()


async def test_all_are_paused_and_all_go_on() -> None:
    engines = [Chain("a"), Chain("b")]
    async with started(*engines) as pool:
        streams = [pool.generate(of(name, name)) for name in "ab"]
        for stream in streams:
            await anext(stream)
        rests = [asyncio.create_task(_rest(stream)) for stream in streams]
        await pool.pause()
        assert [engine.under_way for engine in engines] == [0, 0]
        assert all(member.paused for member in pool.members)
        await pool.resume()
        assert all(rest for rest in await asyncio.gather(*rests))


async def _rest(deltas: AsyncIterator[Delta]) -> list[Delta]:
    return [delta async for delta in deltas]
