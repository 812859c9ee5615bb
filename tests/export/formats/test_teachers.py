"""Where each format has a teacher's rows, and how they are shifted."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given

from stenograph.core import JSON, Sample, TeacherInfo, Teaching, Turn
from stenograph.export.formats.table import FORMATS
from stenograph.export.sample import from_json, samples, to_bytes
from tests.export.formats.reading import rows
from tests.export.trees import FACTS, call, part, trees, turn

REWARDED = msgspec.structs.replace(FACTS, reward=0.5, group="g")
TURNS = [turn(call("a"), parts=[part(3)])]
"""1 2 3 [100 101 102]"""


def teaching(length: int, top_k: int = 2) -> Teaching:
    """Row i holds 10 i, 10 i + 1 …: what has moved is seen."""
    ids = (10 * np.arange(length)[:, None] + np.arange(top_k)).astype(np.int32)
    return Teaching(
        top_k=top_k,
        token_ids=ids,
        logprobs=(-ids / 16).astype(np.float32),
        token_logprobs=-np.arange(length, dtype=np.float32),
    )


def info(error: str | None = None) -> TeacherInfo:
    return TeacherInfo(model="m", weight=0.5, error=error)


def with_teachers(sample: Sample, **teachings: Teaching | None) -> Sample:
    there = {name: one for name, one in teachings.items() if one is not None}
    told = {name: info(None if one else "it broke") for name, one in teachings.items()}
    return msgspec.structs.replace(sample, teachers=there, teacher_info=told)


def one(**teachings: Teaching | None) -> Sample:
    (sample,) = samples(REWARDED, TURNS)
    return with_teachers(sample, **teachings)


def written(name: str, *found: Sample) -> list[JSON]:
    return list(rows(b"".join(FORMATS[name].encode(found))))


@given(trees())
def test_json_has_all_of_it_and_back(tree: list[Turn]) -> None:
    for sample in samples(FACTS, tree):
        for top_k in (0, 1, 3):
            taught = with_teachers(sample, a=teaching(len(sample.tokens), top_k), b=None)
            if len(sample.tokens):
                again = from_json(to_bytes(taught))
                assert to_bytes(again) == to_bytes(taught)
                assert again.teachers
                assert again.teachers["a"].token_ids.shape == (len(sample.tokens), top_k)
        assert "teacher" not in to_bytes(sample).decode()


def test_rows_that_are_not_as_many_as_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="6 tokens, and a has 5 rows"):
        one(a=teaching(5))
    table = teaching(3)
    with pytest.raises(ValueError, match="has arrays of"):
        Teaching(top_k=3, token_ids=table.token_ids, logprobs=table.logprobs, token_logprobs=table.token_logprobs)


def test_atropos_rows_are_not_shifted() -> None:
    (row,) = written("atropos", one(a=teaching(6)))
    assert row["distill_token_ids"] == [teaching(6).token_ids.tolist()]
    assert row["distill_logprobs"] == [teaching(6).logprobs.tolist()]
    assert row["overrides"][0]["stenograph"]["teacher_logprobs"] == [0.0, -1.0, -2.0, -3.0, -4.0, -5.0]
    assert row["overrides"][0]["stenograph"]["teacher_info"]["a"] == {"model": "m", "weight": 0.5, "error": None}


def test_an_atropos_group_is_one_table_whoever_has_what() -> None:
    found = [
        msgspec.structs.replace(one(a=rows), session_id=f"s{place}", group_size=3)
        for place, rows in enumerate((teaching(6, 2), None, teaching(6, 3)))
    ]
    (row,) = written("atropos", *found)
    ids, logprobs = np.array(row["distill_token_ids"]), np.array(row["distill_logprobs"])
    assert ids.shape == logprobs.shape == (3, 6, 3)
    assert (ids[1] == -1).all()
    assert (logprobs[1] == 0).all()
    assert ids[0, 5].tolist() == [50, 51, -1]
    assert ids[2, 5].tolist() == [50, 51, 52]
    assert row["overrides"][1]["stenograph"]["teacher_info"]["a"]["error"] == "it broke"


@pytest.mark.parametrize("rows", [None, teaching(6, 0)], ids=["failed", "none asked for"])
def test_atropos_has_null_where_there_is_nothing(rows: Any) -> None:
    (row,) = written("atropos", one(a=rows))
    assert row["distill_token_ids"] is row["distill_logprobs"] is None
    assert "distill_token_ids" not in written("atropos", *samples(REWARDED, TURNS))[0]


def test_trl_rows_are_the_completions() -> None:
    (row,) = written("trl", one(a=teaching(6), b=teaching(6, 0)))
    (told,) = row["teachers"]
    assert told["a"]["token_ids"] == [[30, 31], [40, 41], [50, 51]]
    assert told["b"]["token_logprobs"] == [-3.0, -4.0, -5.0]
    assert len(told["a"]["token_ids"]) == len(row["completion_ids"][0])
    assert "teachers" not in written("trl", *samples(REWARDED, TURNS))[0]


def test_tinker_rows_are_shifted_with_the_targets() -> None:
    (row,) = written("tinker", one(a=teaching(6)))
    targets = row["datum"]["loss_fn_inputs"]["target_tokens"]
    told = row["teachers"]["a"]
    assert told["token_logprobs"] == {"data": [-1.0, -2.0, -3.0, -4.0, -5.0], "dtype": "float32", "shape": [5]}
    assert told["token_ids"]["shape"] == told["logprobs"]["shape"] == [*targets["shape"], 2]
    assert told["token_ids"]["data"] == [10, 11, 20, 21, 30, 31, 40, 41, 50, 51]
    assert "teachers" not in written("tinker", *samples(REWARDED, TURNS))[0]
