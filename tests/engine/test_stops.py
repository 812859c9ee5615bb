from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from stenograph.core import Finish, Sampling
from stenograph.engine.stops import StopWatch
from tests.engine.streams import END, small_tokenizer

TOKENIZER = small_tokenizer()
EOS = TOKENIZER.added[END]
bytes_ids = [TOKENIZER.encode(letter)[0] for letter in "ab\n"]


def watched(ids: Sequence[int], **sampling: Any) -> tuple[int, Finish | None]:
    """How many tokens were let through, and what ended them."""
    watch = StopWatch(Sampling(**sampling), TOKENIZER, EOS)
    for place, id in enumerate(ids):
        if end := watch.end_of([id]):
            return place + 1, end
    return len(ids), None


def test_nothing_ends_a_reply_that_asks_for_no_end() -> None:
    assert watched([*TOKENIZER.encode("the answer"), EOS]) == (len(TOKENIZER.encode("the answer")) + 1, None)


def test_a_stop_id_is_the_last_token() -> None:
    assert watched([5, 6, 7, 8], stop_token_ids=(7,)) == (3, Finish("stop", 7))


def test_the_models_own_end_is_no_stop_reason() -> None:
    assert watched([5, EOS, 6], stop_token_ids=(EOS,)) == (2, Finish("stop", None))


@pytest.mark.parametrize(
    ("text", "stop", "through"),
    [
        ("one\ntwo", ("\n",), "one\n"),
        ("one two three", ("two t",), "one two t"),
        ("é😀日本", ("日",), "é😀日"),
        ("aaab", ("aab",), "aaab"),
        ("the answer", ("nothing",), "the answer"),
        ("a <|im_end|> b", ("im_end",), "a <|im_end|>"),
    ],
)
def test_a_stop_string_ends_with_the_token_that_completes_it(text: str, stop: tuple[str, ...], through: str) -> None:
    ids = TOKENIZER.encode(text)
    count, end = watched(ids, stop=stop)
    assert TOKENIZER.decode(ids[:count]).startswith(through)
    assert not any(string in TOKENIZER.decode(ids[: count - 1]) for string in stop)
    assert end == (Finish("stop", stop[0]) if stop[0] in text else None)


def test_the_string_that_comes_first_is_the_reason() -> None:
    ids = TOKENIZER.encode("shells")[:1]
    word = TOKENIZER.decode(ids)
    assert len(word) > 1
    assert watched(ids, stop=(word[1:], word[:1])) == (1, Finish("stop", word[:1]))


@given(st.lists(st.sampled_from(bytes_ids), max_size=30), st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3))
def test_it_ends_where_a_search_of_the_whole_text_would(ids: list[int], stop: list[str]) -> None:
    texts = [TOKENIZER.decode(ids[: place + 1]) for place in range(len(ids))]
    first = next((place + 1 for place, text in enumerate(texts) if any(string in text for string in stop)), None)
    count, end = watched(ids, stop=tuple(stop))
    assert (count if end else None) == first
