"""Prompts as JSON, whatever was spelt before."""

from __future__ import annotations

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import example, given

from stenograph.core import NEUTRAL, Ids, Request
from stenograph.engine import prompt_json
from stenograph.engine.prompt_json import Speller, spelled

SESSIONS = st.sampled_from("ab")
PROMPTS = st.lists(st.integers(0, 2), max_size=4) | st.lists(st.integers(0, 2**31 - 1), max_size=9)


@given(st.lists(st.tuples(SESSIONS, PROMPTS)), st.integers(0, 12))
@example([("a", [1]), ("a", [1, 2]), ("b", [1]), ("a", [1, 2]), ("a", [2, 2, 2]), ("a", [1, 2, 3])], 12)
def test_every_prompt_is_spelt_whole_in_bounded_room(asked: list[tuple[str, list[int]]], room: int) -> None:
    speller = Speller(room)
    for session, prompt in asked:
        request = Request("x", session, np.array(prompt, np.int32), NEUTRAL)
        text = speller.spelled(request)
        assert text == spelled(request.prompt)
        assert msgspec.json.decode(text) == prompt
        assert speller.remembered <= room


def test_what_a_prompt_repeats_is_not_spelt_again(monkeypatch: pytest.MonkeyPatch) -> None:
    speller = Speller()
    encoded: list[list[int]] = []

    def noted(ids: Ids) -> bytes:
        encoded.append(ids.tolist())
        return msgspec.json.encode(ids.tolist())

    monkeypatch.setattr(prompt_json, "_encoded", noted)
    for prompt in ([1, 2], [1, 2, 3], [1, 2, 3, 4, 5]):
        speller.spelled(Request("x", "a", np.array(prompt, np.int32), NEUTRAL))
    assert encoded == [[1, 2], [3], [4, 5]]
