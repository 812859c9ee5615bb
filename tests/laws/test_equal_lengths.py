"""Law 7: nothing can be made whose columns differ in length."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import assume, given

from stenograph.core import Delta, Part, Sample, TopLogprob

lengths = st.integers(0, 5)


@given(lengths, lengths)
def test_a_part(ids: int, logprobs: int) -> None:
    assume(ids != logprobs)
    with pytest.raises(ValueError, match=f"{ids} ids has {logprobs} logprobs"):
        Part(np.zeros(ids, np.int32), np.zeros(logprobs, np.float32), "e", "vllm", "raw")


@given(lengths, lengths, st.none() | lengths)
def test_a_delta(ids: int, logprobs: int, rows: int | None) -> None:
    assume(ids != logprobs or rows not in (None, ids))
    top = None if rows is None else ((TopLogprob(1, -1.0),),) * rows
    with pytest.raises(ValueError, match=f"{ids} ids, and .* of what was told"):
        Delta(0, np.zeros(ids, np.int32), np.zeros(logprobs, np.float32), top)


@given(st.lists(lengths, min_size=4, max_size=4))
def test_a_sample(columns: list[int]) -> None:
    assume(len(set(columns)) > 1)
    with pytest.raises(ValueError, match="differ in length"):
        msgspec.structs.replace(_sample(0), **_columns(columns))


@given(lengths)
def test_equal_ones_are_welcome(length: int) -> None:
    assert len(_sample(length).tokens) == length


def _columns(lengths: list[int]) -> dict[str, Any]:
    kinds = {"tokens": np.int32, "sampled": np.uint8, "mask": np.uint8, "logprobs": np.float32}
    return {name: np.zeros(length, kind) for (name, kind), length in zip(kinds.items(), lengths, strict=True)}


def _sample(length: int) -> Sample:
    known: dict[str, Any] = {
        "id": "s:t", "session_id": "s", "group": None, "group_size": None, "role": "train", "branch": 0, "branches": 1,
        "main": True, "leaf_turn_id": "t", "spans": (), "reward": None, "rewards": {}, "scores": {},
        "reward_revision": 0, "status": "open", "truncated": None, "versions": (), "notes": (), "fork": None,
        "metadata": {},
    }  # fmt: skip
    return Sample(**known, **_columns([length] * 4))
