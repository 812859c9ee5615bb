"""What every store does: the same tests over each of them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import hypothesis
import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest

from stenograph.core import Batch, Lesson, State, Teacher, Turn, WeightsSaid
from stenograph.errors import StoreError
from stenograph.store.memory import MemoryStore
from stenograph.store.sqlite import SqliteStore
from stenograph.store.store import Blob, Record, Store, StoredSession, TurnsCommitted
from stenograph.store.tables import PAGE
from tests.store.nouns import (
    BATCHES,
    LESSONS,
    TAUGHT_BY,
    call,
    committed,
    facts,
    lesson,
    lessons,
    part,
    plain,
    records,
    sessions,
    whole,
)


@contextmanager
def on_disk() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        yield SqliteStore(Path(folder))


@contextmanager
def in_memory() -> Iterator[Store]:
    yield MemoryStore()


MakeStore: TypeAlias = Callable[[], Any]
KINDS = pytest.mark.parametrize("make", [in_memory, on_disk])


@pytest.fixture(params=[in_memory, on_disk])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    with request.param() as opened:
        yield opened
        await opened.close()


def loaded(store: Store, id: str = "s") -> StoredSession:
    found = store.load(id)
    assert found is not None
    return found


@KINDS
@hypothesis.given(session=sessions())
def test_any_session_comes_back_bit_by_bit(make: MakeStore, session: StoredSession) -> None:
    async def there_and_back(store: Store) -> None:
        await store.commit(records(session))
        assert plain(loaded(store, session.facts.id)) == plain(session)
        assert plain(list(store.facts())) == plain([session.facts])
        await store.close()

    with make() as store:
        asyncio.run(there_and_back(store))


async def test_calls_come_in_the_order_of_their_commits(store: Store) -> None:
    await store.commit([facts(), committed("b", n=2)])
    await store.commit([committed("a", parent="b.1")])
    await store.commit([committed("c", parent="b.0"), committed("d", parent="c.0")])
    assert [each.turns[0].call.id for each in loaded(store).calls] == ["b", "a", "c", "d"]


async def test_siblings_share_one_call(store: Store) -> None:
    await store.commit([facts(), committed("c", n=3)])
    turns = loaded(store).calls[0].turns
    assert [turn.choice for turn in turns] == [0, 1, 2]
    assert all(turn.call is turns[0].call for turn in turns)


async def test_sessions_are_apart(store: Store) -> None:
    await store.commit([facts("s"), facts("z"), committed("c", session="s"), committed("d", session="z")])
    assert [each.turns[0].id for each in loaded(store, "z").calls] == ["d.0"]
    assert store.load("nobody") is None


async def test_arrays_come_back_read_only(store: Store) -> None:
    await store.commit([facts(), committed("c")])
    turn = loaded(store).calls[0].turns[0]
    for array in (turn.call.context, turn.parts[0].ids, turn.parts[0].logprobs):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)


async def test_a_change_after_the_commit_does_not_reach_the_store(store: Store) -> None:
    made = committed("c", labels={"user": "one"})
    await store.commit([facts(), made])
    before = plain(loaded(store))
    made.turns[0].parts[0].ids[0] = 99
    made.turns[0].call.labels["user"] = "two"
    assert plain(loaded(store)) == before


async def test_the_latest_facts_count(store: Store) -> None:
    await store.commit([facts(), committed("c")])
    await store.commit([facts(state=State.FAILED, error="e", group="g")])
    assert loaded(store).facts == facts(state=State.FAILED, error="e", group="g")
    assert len(loaded(store).calls) == 1
    assert len(list(store.facts())) == 1


async def test_all_sessions_oldest_first_over_many_pages(store: Store) -> None:
    ages = [float(place * 7 % (PAGE + 3) // 2) for place in range(PAGE + 3)]
    await store.commit([facts(f"{place}", created_at=age) for place, age in enumerate(ages)])
    found = [(each.created_at, each.id) for each in store.facts()]
    assert found == sorted((age, f"{place}") for place, age in enumerate(ages))


async def test_a_session_that_begins_while_all_are_listed_is_seen(store: Store) -> None:
    await store.commit([facts(f"{place}", created_at=float(place)) for place in range(PAGE)])
    listing = store.facts()
    next(listing)
    await store.commit([facts("late", created_at=1e9)])
    assert [each.id for each in listing][-1] == "late"


async def test_blobs_are_kept_once(store: Store) -> None:
    await store.commit([Blob("h", b"\0body")])
    await store.commit([Blob("h", b"\0body"), Blob("e", b"")])
    assert store.blob("h") == b"\0body"
    assert store.blob("e") == b""
    assert store.blob("nothing") is None


@KINDS
@hypothesis.settings(max_examples=15)
@hypothesis.given(batch=whole(Batch), said=st.lists(whole(WeightsSaid), max_size=3))
def test_batches_and_what_was_said_of_weights_come_back(make: MakeStore, batch: Batch, said: list[WeightsSaid]) -> None:
    async def there_and_back(store: Store) -> None:
        await store.commit([msgspec.structs.replace(batch, deliveries=99), *said])
        await store.commit([batch])
        assert store.batches() == (batch,)
        assert store.weights() == tuple(said)
        await store.close()

    with make() as store:
        asyncio.run(there_and_back(store))


@KINDS
@hypothesis.settings(max_examples=15)
@hypothesis.given(teacher=whole(Teacher), taught=lessons())
def test_teachers_and_lessons_come_back(make: MakeStore, teacher: Teacher, taught: Lesson) -> None:
    async def there_and_back(store: Store) -> None:
        await store.commit([msgspec.structs.replace(teacher, top_k=99), msgspec.structs.replace(taught, error="new")])
        await store.commit([teacher, taught])
        assert store.teachers() == (teacher,)
        assert plain(store.lessons([taught.key, "no such key"])) == plain({taught.key: taught})
        await store.close()

    with make() as store:
        asyncio.run(there_and_back(store))


async def test_lessons_go_with_their_session(store: Store) -> None:
    await store.commit([facts("s"), facts("z"), *TAUGHT_BY, *LESSONS, lesson("k3", session_id="z")])
    await store.delete("s")
    assert list(store.lessons(["k1", "k2", "k3"])) == ["k3"]
    assert store.teachers() == TAUGHT_BY


async def test_batches_come_in_the_order_of_their_completion(store: Store) -> None:
    await store.commit(BATCHES[::-1])
    assert store.batches() == BATCHES


async def test_facts_may_be_named_after_their_first_call(store: Store) -> None:
    await store.commit([committed("c"), facts()])
    assert len(loaded(store).calls) == 1


async def test_a_deleted_session_is_forgotten_and_no_other(store: Store) -> None:
    await store.commit([facts("s"), facts("z"), committed("c", n=2), committed("d", parent="c.1"), Blob("h", b"")])
    await store.commit([committed("e", session="z"), committed("f", session="z", parent="e.0")])
    before = plain(loaded(store, "z"))
    await store.delete("s")
    assert store.load("s") is None
    assert [each.id for each in store.facts()] == ["z"]
    assert plain(loaded(store, "z")) == before
    assert store.blob("h") == b""
    await store.delete("s")
    with pytest.raises(StoreError, match="is not in it"):
        await store.commit([committed("g")])


async def test_a_sidecar_goes_with_the_last_session_that_names_it(store: Store) -> None:
    """They are large, and by content: two sessions may have the same."""

    def naming(id: str, session: str, **sidecars: str) -> TurnsCommitted:
        (turn,) = committed(id, session=session).turns
        parts = tuple(msgspec.structs.replace(part, sidecars=sidecars) for part in turn.parts)
        return TurnsCommitted((msgspec.structs.replace(turn, parts=parts),))

    blobs = [Blob(name, b"body") for name in ("own", "both", "other", "tools")]
    await store.commit([facts("s"), facts("z"), *blobs])
    await store.commit([naming("c", "s", routed_experts="own", sampling_mask="both")])
    await store.commit([naming("d", "z", routed_experts="other", sampling_mask="both")])
    await store.delete("s")
    assert [store.blob(name) is not None for name in ("own", "both", "other", "tools")] == [False, True, True, True]
    await store.delete("z")
    assert [store.blob(name) is not None for name in ("both", "other", "tools")] == [False, False, True]


async def test_nothing_of_a_deleted_session_is_left(store: Store) -> None:
    made: list[Record] = [facts(), committed("c", n=2), committed("d", parent="c.1")]
    await store.commit(made)
    await store.delete("s")
    await store.commit([facts("s", error="new")])
    assert loaded(store).calls == ()
    await store.commit(made)
    assert len(loaded(store).calls) == 2


def with_part(**changes: Any) -> TurnsCommitted:
    turn = committed("x").turns[0]
    return TurnsCommitted((msgspec.structs.replace(turn, parts=(part(**changes),)),))


def renamed(turn: Turn, **changes: Any) -> Turn:
    return msgspec.structs.replace(turn, **changes)


def bottomless() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


x = committed("x", n=2)
REFUSED: dict[str, tuple[Record, str]] = {
    "a call's id again": (committed("c"), "never written again"),
    "a turn's id again": (TurnsCommitted((renamed(x.turns[0], id="c.0"),)), "never written again"),
    "a choice twice": (TurnsCommitted((x.turns[0], renamed(x.turns[0], id="y"))), "never written again"),
    "no such session": (committed("x", session="nobody"), "is not in it"),
    "no such parent": (committed("x", parent="nobody"), "is not in it"),
    "no turns": (TurnsCommitted(()), "the one call they share"),
    "two calls": (TurnsCommitted((x.turns[0], renamed(x.turns[1], call=call("y")))), "the one call they share"),
    "wide ids": (with_part(ids=np.zeros(3, np.int64)), "int32"),
    "wide logprobs": (with_part(logprobs=np.zeros(3)), "float32"),
    "a table of ids": (with_part(ids=np.zeros((3, 1), np.int32)), "2 dimensions"),
    "wide lessons": (lesson(token_logprobs=np.zeros(3)), "float32"),
    "NaN in JSON": (facts("z", metadata={"loss": float("nan")}), "metadata cannot be kept exactly"),
    "NaN as a score": (facts("z", scores={"loss": float("nan")}), "Expected `float`"),
    "NaN in a column": (facts("z", created_at=float("nan")), "created_at"),
    "bottomless JSON": (facts("z", metadata={"deep": bottomless()}), "recursion"),
    "a tuple in JSON": (committed("x", labels={"pair": (1, 2)}), "labels cannot be kept exactly"),
    "half a surrogate": (committed("x\ud800"), "surrogates"),
    "half a surrogate in JSON": (committed("x", model="\ud800"), "surrogates"),
    "a huge number": (TurnsCommitted((renamed(x.turns[0], choice=2**64),)), "too large"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_be_kept_is_refused_with_all_that_came_with_it(store: Store, case: str) -> None:
    record, words = REFUSED[case]
    await store.commit([facts(), committed("c")])
    before = plain(loaded(store))
    with pytest.raises(StoreError, match=words):
        await store.commit([facts(error="new"), facts("new"), Blob("h", b""), committed("d"), record, committed("e")])
    assert plain(loaded(store)) == before
    assert [each.id for each in store.facts()] == ["s"]
    assert store.blob("h") is None
    await store.commit([committed("d")])


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.commit([facts()])
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.commit([facts("z")])
    with pytest.raises(StoreError, match="closed"):
        store.load("s")


async def test_closing_twice_is_closing(store: Store) -> None:
    await store.close()
    await store.close()
