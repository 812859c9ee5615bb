"""The laws of a teacher's word: rectangular, aligned, of equal length; each sequence by itself; nothing asked twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from stenograph.core import Ids, Sample, Teaching, Turn
from stenograph.engine.scoring import Scored
from stenograph.errors import CallerError, EngineError, EngineUnavailable, Overloaded
from stenograph.export.sample import samples
from stenograph.store.memory import MemoryStore
from stenograph.teacher.lessons import NOT_SCORED
from tests.export.trees import FACTS, call, ids, part, trees, turn
from tests.teacher.toy import Toy, expected, plain, readings, teacher, teachers

Positions = Literal["sampled", "all"]


async def taught(store: MemoryStore, engine: Toy, found: Sequence[Sample], **facts: Any) -> list[Sample]:
    return await teachers(store, engine, teacher(**facts)).taught("toy", readings(found))


def teaching(sample: Sample, name: str = "toy") -> Teaching:
    assert sample.teachers
    return sample.teachers[name]


def error(sample: Sample, name: str = "toy") -> str | None:
    assert sample.teacher_info
    return sample.teacher_info[name].error


@given(trees(), st.sampled_from(["sampled", "all"]), st.integers(0, 3))
def test_rows_are_aligned_with_tokens(tree: list[Turn], positions: Positions, top_k: int) -> None:
    """Row i is what the teacher says in place of token i, given all before it; of the first nobody can say anything."""
    found = samples(FACTS, tree)
    for one in asyncio.run(taught(MemoryStore(), Toy(), found, positions=positions, top_k=top_k)):
        asked = [place > 0 and (positions == "all" or bool(one.sampled[place])) for place in range(len(one.tokens))]
        rows = teaching(one)
        assert rows.top_k == top_k
        assert rows.token_ids.shape == rows.logprobs.shape == (len(one.tokens), top_k)
        assert plain(rows) == expected(one.tokens.tolist(), asked, top_k)
        assert error(one) is None


@given(trees(), st.sampled_from(["sampled", "all"]))
def test_what_branches_share_is_asked_once(tree: list[Turn], positions: Positions) -> None:
    engine, store = Toy(), MemoryStore()
    found = samples(FACTS, tree)
    asyncio.run(taught(store, engine, found, positions=positions))
    wanted = {
        tuple(one.tokens[: place + 1].tolist())
        for one in found
        for place in range(1, len(one.tokens))
        if positions == "all" or one.sampled[place]
    }
    asked = [tuple(sequence[: place + 1]) for sequence, start in engine.asked for place in range(start, len(sequence))]
    assert wanted <= set(asked)
    asyncio.run(taught(store, engine, found, positions=positions))
    assert len(engine.asked) == len(engine.answered)
    assert len({(tuple(sequence), start) for sequence, start in engine.asked}) == len(engine.asked)


FOREST = [turn(call("a", context=ids(*range(50))))] + [
    turn(call(f"b{place}", "a", context=ids(60 + place)), parts=[part(5, first=200 + 10 * place)]) for place in range(8)
]
"""Eight branches behind one turn."""


async def test_a_shared_beginning_costs_no_second_row() -> None:
    engine = Toy()
    found = samples(FACTS, FOREST)
    await taught(MemoryStore(), engine, found, positions="all")
    assert len(found) == 8
    assert engine.positions == 51 + 8 * 6


async def test_one_that_fails_leaves_seven() -> None:
    """It is tried again, it is marked with its error, and it is asked again the next time."""
    store, found = MemoryStore(), samples(FACTS, FOREST)
    broken = found[3].tokens.tolist()
    engine = Toy(lambda sequence: EngineError("it broke") if sequence == broken else None)
    once = await taught(store, engine, found)
    assert [error(one) for one in once] == [None] * 3 + ["it broke"] + [None] * 4
    assert [sample.teachers == {} for sample in once] == [place == 3 for place in range(8)]
    assert engine.asked.count((broken, engine.asked[-1][1])) == 3, "two pauses, three tries"
    engine.fails = lambda sequence: None
    before = len(engine.asked)
    again = await taught(store, engine, found)
    assert [error(one) for one in again] == [None] * 8
    assert len(engine.asked) == before + 1


async def test_the_first_of_a_family_that_fails_leaves_the_others_what_they_share() -> None:
    found = samples(FACTS, FOREST)
    broken = found[0].tokens.tolist()
    engine = Toy(lambda sequence: CallerError("not this one") if sequence == broken else None)
    once = await taught(MemoryStore(), engine, found, positions="all")
    assert [error(one) for one in once] == ["not this one"] + [None] * 7
    assert len([1 for sequence, _ in engine.asked if sequence == broken]) == 1, "a refusal is not tried again"


async def test_an_engine_that_is_full_is_asked_again() -> None:
    answers = iter([Overloaded("full"), EngineUnavailable("away"), None])
    (one,) = await taught(MemoryStore(), Toy(lambda sequence: next(answers)), samples(FACTS, FOREST[:1]))
    assert error(one) is None


@pytest.mark.parametrize("positions", ["sampled", "all"])
@pytest.mark.parametrize("survived", range(9))
async def test_stopped_at_any_point_it_goes_on_where_it_was(positions: Positions, survived: int) -> None:
    store, found = MemoryStore(), samples(FACTS, FOREST)
    engine = Toy()

    def until(sequence: list[int]) -> None:
        if len(engine.answered) == survived:
            engine.gate.clear()
            task.cancel()

    engine.fails = until
    work = teachers(store, engine, teacher(positions=positions), at_once=1).taught("toy", readings(found))
    task = asyncio.ensure_future(work)
    if survived < len(found):
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engine.at_once == 0, "nothing goes on for nobody"
    await asyncio.gather(task, return_exceptions=True)
    finished = list(engine.answered)
    engine.fails = lambda sequence: None
    engine.gate.set()
    await taught(store, engine, found, positions=positions)
    assert [error(one) for one in await taught(store, engine, found, positions=positions)] == [None] * 8
    committed = finished[:survived]
    for one in committed:
        assert engine.answered.count(one) == 1, "what was durable is scored once"
    assert len(engine.answered) <= 8 + len(finished) - len(committed)


async def test_two_that_ask_at_once_share_the_work() -> None:
    store, found, engine = MemoryStore(), samples(FACTS, FOREST), Toy()
    house = teachers(store, engine)
    first, second = await asyncio.gather(*(house.taught("toy", readings(found)) for _ in range(2)))
    assert [plain(teaching(one)) for one in first] == [plain(teaching(one)) for one in second]
    assert len(engine.asked) == 8


async def test_a_run_that_somebody_else_took_up_is_theirs() -> None:
    """The first to ask fails at one of two, and is still at the other while the second is at the one that failed: a
    third waits for the second, also when the first has ended meanwhile."""
    found = samples(FACTS, [turn(call("a", context=ids(1))), turn(call("b", context=ids(2)))])
    broken, other = (one.tokens.tolist() for one in sorted(found, key=lambda one: one.tokens.tolist()))
    engine, answers = Toy(), iter([CallerError("not this one"), None])
    gates = {1: asyncio.Event(), 2: asyncio.Event()}
    begun = {1: asyncio.Event(), 2: asyncio.Event()}

    class Slow(Toy):
        async def score(self, sequence: Ids, top_k: int, start: int = 1) -> Scored:
            kind = 1 if sequence.tolist() == other else 2
            if kind == 1 or engine.asked:
                begun[kind].set()
                await gates[kind].wait()
            return await engine.score(sequence, top_k, start)

    engine.fails = lambda sequence: next(answers) if sequence == broken else None
    house = teachers(MemoryStore(), Slow())
    first = asyncio.ensure_future(house.taught("toy", readings(found)))
    await begun[1].wait()
    for _ in range(10):
        await asyncio.sleep(0)
    one_that_failed = [one for one in found if one.tokens.tolist() == broken]
    second = asyncio.ensure_future(house.taught("toy", readings(one_that_failed)))
    await begun[2].wait()
    gates[1].set()
    await first
    third = asyncio.ensure_future(house.taught("toy", readings(one_that_failed)))
    for _ in range(10):
        await asyncio.sleep(0)
    gates[2].set()
    await asyncio.gather(second, third)
    assert len([1 for sequence, _ in engine.asked if sequence == broken]) == 2


async def test_more_alternatives_are_asked_for_and_fewer_are_there() -> None:
    store, found, engine = MemoryStore(), samples(FACTS, FOREST), Toy()
    for top_k, asked in ((2, 8), (1, 8), (0, 8), (5, 16), (3, 16)):
        for one in await taught(store, engine, found, top_k=top_k):
            rows = plain(teaching(one))
            assert rows == expected(one.tokens.tolist(), [bool(sampled) for sampled in one.sampled], top_k)
        assert len(engine.asked) == asked


async def test_teachers_are_apart() -> None:
    """By name, by model, and by what they read."""
    store, found, engine = MemoryStore(), samples(FACTS, FOREST), Toy()
    for place, facts in enumerate(({}, {"name": "other"}, {"model": "other"})):
        name = str(facts.get("name", "toy"))
        await teachers(store, engine, teacher(**facts)).taught(name, readings(found))
        assert len(engine.asked) == 8 * (place + 1)
    assert [one.name for one in store.teachers()] == ["other", "toy"]


def in_group(overrides: Any) -> Any:
    return msgspec.structs.replace(FACTS, metadata={"group_overrides": overrides})


async def test_a_group_may_want_more_or_none() -> None:
    engine, store = Toy(), MemoryStore()
    (more,) = await taught(store, engine, samples(in_group({"teacher_top_k": 4}), FOREST[:1]))
    assert teaching(more).top_k == 4
    (none,) = await taught(store, engine, samples(in_group({"skip_teacher_top_k": True}), FOREST[:1]))
    assert (none.teachers, error(none)) == ({}, "its group is left out (skip_teacher_top_k)")
    (wrong,) = await taught(store, engine, samples(in_group({"teacher_top_k": "many"}), FOREST[:1]))
    assert "group_overrides: Expected `int | null`" in str(error(wrong))
    assert len(engine.asked) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"context": ids(*[1] * 1000)}, "it has 1002 tokens, and the teacher's context holds 1000"),
        ({"context": ids(500)}, "it has token 500, which the teacher's vocabulary does not have"),
    ],
)
async def test_what_cannot_be_sent_is_not_sent(changes: dict[str, Any], words: str) -> None:
    engine = Toy()
    found = samples(FACTS, [turn(call("a", **changes))])
    (one,) = await teachers(MemoryStore(), engine, vocabulary=500).taught("toy", readings(found))
    assert error(one) == words
    assert engine.asked == []


async def test_too_many_alternatives_are_said_to_be() -> None:
    (one,) = await taught(MemoryStore(), Toy(), samples(in_group({"teacher_top_k": 21}), FOREST[:1]))
    assert error(one) == "21 alternatives were wanted, and the teacher tells 20"


async def test_what_was_never_scored_says_so() -> None:
    store = MemoryStore()
    await store.commit([teacher()])
    (one,) = await teachers(store, Toy(), teacher(name="other")).taught("toy", readings(samples(FACTS, FOREST[:1])))
    assert error(one) == NOT_SCORED


async def test_no_more_at_once_than_the_engine_may_have() -> None:
    engine, found = Toy(), samples(FACTS, [turn(call(f"r{place}", context=ids(place))) for place in range(20)])
    await taught(MemoryStore(), engine, found)
    assert engine.most_at_once == 3
