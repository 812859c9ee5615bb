"""Law 2: whatever is wrong with the evidence is refused in a sentence, and nothing is mended."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from stenograph.core import Delta, Finish, TopLogprob
from stenograph.engine.evidence import SENTINEL, best_first, checked, delta_from
from stenograph.errors import CallerError, EvidenceError
from tests.engine.streams import delta, proven, request, stream

STOP = Finish("stop")


def test_raw_values_become_a_delta() -> None:
    made = delta_from(choice=1, ids=[5, 6], logprobs=[0.0, -1], top=[[(5, 0.0)], [(7, -0.5), (6, -1)]], finish=STOP)
    assert (made.choice, made.ids.tolist(), made.logprobs.tolist(), made.finish) == (1, [5, 6], [0.0, -1.0], STOP)
    assert made.top == ((TopLogprob(5, 0.0),), (TopLogprob(7, -0.5), TopLogprob(6, -1.0)))
    assert made.ids.dtype == np.int32
    assert made.logprobs.dtype == np.float32


def test_a_finish_needs_no_logprobs() -> None:
    assert len(delta_from(choice=0, ids=[], logprobs=None, finish=STOP).ids) == 0


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"logprobs": None}, "logprobs: missing"),
        ({"logprobs": [-1.0, None]}, "token 1: its logprob is missing"),
        ({"logprobs": [-1.0]}, "2 token ids came with 1 logprobs"),
        ({"logprobs": [-1.0, -1.0, -1.0]}, "2 token ids came with 3 logprobs"),
        ({"logprobs": [-1.0, 0.25]}, "its logprob is positive"),
        ({"logprobs": [-1.0, 1e-60]}, "its logprob is positive"),
        ({"logprobs": [math.nan, -1.0]}, "token 0: its logprob is not finite"),
        ({"logprobs": [-math.inf, -1.0]}, "not finite"),
        ({"logprobs": [-1e39, -1.0]}, "not finite"),
        ({"logprobs": [-(10**400), -1.0]}, "not finite"),
        ({"logprobs": [SENTINEL, -1.0]}, "sentinel"),
        ({"logprobs": [-9999, -1.0]}, "sentinel"),
        ({"logprobs": ["-1", -1.0]}, "no number"),
        ({"logprobs": [False, -1.0]}, "no number"),
        ({"logprobs": {"0": -1.0}}, "not a list"),
        ({"ids": None}, "token ids: missing"),
        ({"ids": []}, "0 token ids came with 2 logprobs"),
        ({"ids": [5, 6, 7]}, "3 token ids came with 2 logprobs"),
        ({"ids": [5, "6"]}, "id is no integer"),
        ({"ids": [5, 6.0]}, "id is no integer"),
        ({"ids": [5, True]}, "id is no integer"),
        ({"ids": [5, None]}, "id is no integer"),
        ({"ids": [5, -1]}, "outside the vocabulary"),
        ({"ids": [5, 2**31]}, "outside the vocabulary"),
        ({"choice": True}, "index is no integer"),
        ({"choice": None}, "index is no integer"),
        ({"top": [[(5, -1.0)]]}, "2 token ids came with 1 rows"),
        ({"top": [[(5, -1.0)], None]}, "top logprobs of token 1: missing"),
        ({"top": [[(5, -1.0)], [(6,)]]}, "not pairs"),
        ({"top": [[(5, -1.0)], [(6, 0.5)]]}, "positive"),
    ],
)
def test_unusable_raw_values_are_refused(raw: dict[str, Any], words: str) -> None:
    fields: dict[str, Any] = {"choice": 0, "ids": [5, 6], "logprobs": [-1.0, -1.0]} | raw
    with pytest.raises(EvidenceError, match=words):
        delta_from(**fields)


LEGAL = st.floats(max_value=0.0, allow_infinity=False, width=32).filter(lambda value: value != SENTINEL)


@given(st.lists(st.tuples(st.integers(0, 999), LEGAL)), st.data())
def test_exactly_the_legal_logprobs_pass(tokens: list[tuple[int, float]], data: st.DataObject) -> None:
    ids, logprobs = [id for id, _ in tokens], [logprob for _, logprob in tokens]
    assert delta_from(choice=0, ids=ids, logprobs=logprobs).logprobs.tolist() == logprobs
    illegal = st.one_of(
        st.none(),
        st.booleans(),
        st.text(),
        st.just(SENTINEL),
        st.floats(min_value=0, exclude_min=True),
        st.just(math.nan),
    )
    place = data.draw(st.integers(0, len(logprobs)))
    with pytest.raises(EvidenceError):
        delta_from(choice=0, ids=[*ids, 1], logprobs=[*logprobs[:place], data.draw(illegal), *logprobs[place:]])


def test_alternatives_without_a_chance_are_none() -> None:
    assert best_first({4: -2.0, 5: -0.5, 6: -math.inf, 7: SENTINEL, 8: -1.0}, 2) == [(5, -0.5), (8, -1.0)]


async def test_a_whole_stream_passes_unchanged() -> None:
    deltas = [delta(0, [5], [-1]), delta(1, [], [], STOP), delta(0, [6, 7], [0, -2], Finish("length"))]
    assert await proven(stream(deltas), request(n=2)) == deltas


async def test_a_stop_may_be_told_behind_its_token() -> None:
    """There are servers whose last chunk has no token."""
    deltas = [delta(0, [5, 6], [-1, -1]), delta(1, [7], [-1], Finish("stop", 7)), delta(0, [], [], Finish("stop", 6))]
    assert await proven(stream(deltas), request(n=2)) == deltas
    with pytest.raises(EvidenceError, match="stopped at token 7, which is not the last"):
        await proven(stream([*deltas[:2], delta(0, [], [], Finish("stop", 7))]), request(n=2))


async def test_what_comes_behind_the_end_may_hold_no_tokens() -> None:
    deltas = [delta(0, [5], [-1], STOP), Delta(0, np.zeros(0, np.int32), np.zeros(0, np.float32), cached_tokens=3)]
    assert (await proven(stream(deltas), request()))[-1].cached_tokens == 3


@pytest.mark.parametrize(
    ("deltas", "words"),
    [
        ([delta(0, [5], [0.5], STOP)], "positive"),
        ([delta(0, [5], [math.nan], STOP)], "not finite"),
        ([delta(0, [5], [SENTINEL], STOP)], "sentinel"),
        ([delta(0, [100], [-1], STOP)], "outside the vocabulary of 100"),
        ([delta(0, [-1], [-1], STOP)], "outside the vocabulary"),
        ([delta(2, [5], [-1], STOP)], "choice 2 was not asked for"),
        ([delta(-1, [5], [-1], STOP)], "choice -1 was not asked for"),
        ([delta(0, [5], [-1], STOP), delta(0, [6], [-1])], "after its finish"),
        ([delta(0, [5], [-1], STOP), delta(0, [], [], STOP)], "after its finish"),
        ([delta(0, [5], [-1], STOP)], "choice 1 has no finish"),
        ([], "choice 0 has no finish"),
        ([delta(0, [5] * 5, [-1] * 5), delta(0, [5] * 4, [-1] * 4, STOP)], "9 tokens where max_tokens is 8"),
        ([delta(0, [], [], Finish("length"))], "without a single token"),
        ([delta(0, [5], [-1], Finish("stop", 6))], "stopped at token 6, which is not the last"),
        ([delta(0, [], [], Finish("stop", 6))], "stopped at token 6"),
        ([delta(0, [5], [-1], Finish("stop", [5]))], "neither an id nor a string"),  # type: ignore[arg-type]
    ],
)
async def test_a_stream_that_does_not_add_up_is_refused(deltas: list[Delta], words: str) -> None:
    with pytest.raises(EvidenceError, match=words):
        await proven(stream(deltas), request(n=2), vocab_size=100)


@pytest.mark.parametrize("reason", ["stop", "abort"])
async def test_an_empty_reply_is_legal(reason: Any) -> None:
    assert len(await proven(stream([delta(0, [], [], Finish(reason))]), request())) == 1


async def test_length_before_max_tokens_is_legal() -> None:
    """Engines clamp max_tokens to what is left of the context."""
    assert await proven(stream([delta(0, [5], [-1], Finish("length"))]), request(max_tokens=100))


def ranked(*row: tuple[int, float]) -> Delta:
    top = (tuple(TopLogprob(id, logprob) for id, logprob in row),)
    return Delta(0, np.array([5], np.int32), np.array([-1], np.float32), top=top, finish=STOP)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (delta(0, [5], [-1], STOP), "asked for and are missing"),
        (ranked(), "a row of 0"),
        (ranked((5, -1), (6, -2), (7, -3)), "a row of 3 where 2"),
        (ranked((5, -2), (6, -1)), "not sorted"),
        (ranked((5, -1), (5, -1)), "stands twice"),
        (ranked((5, -1), (1024, -2)), "outside the vocabulary"),
        (ranked((5, 0.5)), "positive"),
        (ranked((5, SENTINEL)), "sentinel"),
    ],
)
async def test_rows_of_alternatives_are_checked(one: Delta, words: str) -> None:
    with pytest.raises(EvidenceError, match=words):
        await proven(stream([one]), request(top=2))


async def test_rows_of_alternatives_pass() -> None:
    assert await proven(stream([ranked((6, -0.5), (5, -1))]), request(top=2))
    assert await proven(stream([ranked((6, -0.5))]), request(top=2))
    with pytest.raises(EvidenceError, match="not asked for"):
        await proven(stream([ranked((6, -0.5))]), request())


class Watched:
    """A stream that tells whether it was begun and whether it was closed."""

    def __init__(self) -> None:
        self.begun = self.closed = False

    async def __call__(self) -> AsyncIterator[Delta]:
        self.begun = True
        try:
            yield delta(0, [5], [-1])
            yield delta(0, [5], [1])
        finally:
            self.closed = True


async def test_closing_it_closes_the_engines_stream() -> None:
    watched = Watched()
    deltas = checked(watched(), request(), 100)
    await anext(deltas)
    await deltas.aclose()
    assert watched.closed


async def test_a_refusal_closes_the_engines_stream() -> None:
    watched = Watched()
    with pytest.raises(EvidenceError):
        await proven(watched(), request())
    assert watched.closed


@pytest.mark.parametrize("foreign", [100, -1])
async def test_a_prompt_outside_the_vocabulary_never_leaves(foreign: int) -> None:
    watched = Watched()
    with pytest.raises(CallerError, match=f"token id {foreign} is outside the vocabulary of 100"):
        await proven(watched(), request([1, foreign]), vocab_size=100)
    assert not watched.begun
