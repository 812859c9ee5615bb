"""What a group must be, and how it is written."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from stenograph.errors import CallerError
from stenograph.integrations.atropos import scored
from tests.integrations.atropos.groups import group


def written(given: Any) -> Any:
    return json.loads(bytes(scored.body(given)))


def test_a_group_is_written_as_it_is_with_fields_that_nobody_looks_at() -> None:
    given = {**group(1), "images": [None, "x"], "group_overrides": {"group_size": 2}, "advantages": [], "mine": 1}
    assert written(given) == given


def test_arrays_are_lists() -> None:
    given = {**group(1), "tokens": np.full((2, 4), 1), "scores": np.array([0.5, 1.0])}
    assert written(given) == {**group(1), "scores": [0.5, 1.0]}


def test_each_group_gets_the_number_that_the_api_gave() -> None:
    assert json.loads(scored.sent_by(7, scored.body(group(1)))) == {**group(1), "env_id": 7}
    assert json.loads(scored.sent_by(7, scored.body([{**group(1), "env_id": None}]))) == [{**group(1), "env_id": 7}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tokens": None}, "tokens"),
        ({"tokens": []}, "tokens: there is no sequence in it"),
        ({"scores": [1.0]}, "scores: it is of 1 sequences, and tokens of 2"),
        ({"scores": [1.0, float("nan")]}, "scores"),
        ({"scores": []}, "scores: it is empty"),
        ({"masks": [[1, 1, 1, 1], [1]]}, r"masks\[1\]: it has 1 positions, and tokens has 4"),
        ({"inference_logprobs": [[1.0]] * 2}, r"inference_logprobs\[0\]: it has 1 positions"),
        ({"distill_token_ids": [[[1]] * 4, [[1]] * 3]}, r"distill_token_ids\[1\]: it has 3 positions"),
        ({"advantages": [[1.0]]}, "advantages: it is of 1 sequences"),
        ({"messages": [[{"role": "user"}], []]}, r"messages\[0\]: each message has a role and a content"),
        ({"images": object()}, "object is no JSON"),
    ],
)
def test_what_atropos_would_drop_or_hand_on_broken_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(CallerError, match=words):
        scored.body({**group(1), **change})


def test_of_a_list_the_group_is_named() -> None:
    with pytest.raises(CallerError, match=r"^\[1\]\.scores: it is empty") as refused:
        scored.body([group(1), {**group(2), "scores": []}])
    assert refused.value.param == "[1].scores"
