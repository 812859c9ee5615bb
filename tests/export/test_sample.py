from __future__ import annotations

import json
from collections import Counter
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from stenograph.core import NoteKind, Sample, State, Turn
from stenograph.export.branch import Branch
from stenograph.export.sample import Shared, from_json, samples, to_bytes
from tests.export.trees import FACTS, call, ids, part, trees, turn

shared_ways = st.sampled_from(["once", "every"])


def only(*turns: Turn) -> Sample:
    (sample,) = samples(FACTS, turns)
    return sample


def trained(found: list[Sample]) -> Counter[tuple[str, int]]:
    """How often each (turn, part) is trained."""
    return Counter((span.turn_id, span.part) for sample in found for span in sample.spans if span.trained)


def sampled(tree: list[Turn]) -> set[tuple[str, int]]:
    return {(turn.id, number) for turn in tree for number, part in enumerate(turn.parts) if len(part.ids)}


# ------------------------------------------------------------------------------------------------------------- laws


@given(trees(), shared_ways)
def test_the_four_columns_are_equally_long_and_cannot_be_written(tree: list[Turn], shared: Shared) -> None:
    for sample in samples(FACTS, tree, shared):
        columns: list[NDArray[Any]] = [sample.tokens, sample.sampled, sample.mask, sample.logprobs]
        assert len({len(column) for column in columns}) == 1
        assert [column.dtype for column in columns] == [np.int32, np.uint8, np.uint8, np.float32]
        assert not any(column.flags.writeable for column in columns)


@given(trees(), shared_ways)
def test_tokens_are_the_path_and_logprobs_are_the_engines(tree: list[Turn], shared: Shared) -> None:
    by_id = {turn.id: turn for turn in tree}
    for sample in samples(FACTS, tree, shared):
        tokens: list[int] = []
        logprobs: list[float] = []
        at: str | None = sample.leaf_turn_id
        while at is not None:
            node = by_id[at]
            tokens = [*node.call.context.tolist(), *node.sampled.tolist(), *tokens]
            logprobs = [*[0.0] * len(node.call.context), *node.logprobs.tolist(), *logprobs]
            at = node.call.parent
        assert sample.tokens.tolist() == tokens
        assert sample.logprobs.tobytes() == np.array(logprobs, np.float32).tobytes()


@given(trees(), shared_ways)
def test_spans_partition_the_sampled_ids_in_order(tree: list[Turn], shared: Shared) -> None:
    parts = {(turn.id, number): part for turn in tree for number, part in enumerate(turn.parts)}
    for sample in samples(FACTS, tree, shared):
        inside = [place for span in sample.spans for place in range(span.start, span.end)]
        assert inside == np.flatnonzero(sample.sampled).tolist()
        for span in sample.spans:
            assert sample.tokens[span.start : span.end].tolist() == parts[span.turn_id, span.part].ids.tolist() != []
            assert set(sample.mask[span.start : span.end].tolist()) == {int(span.trained)}


@given(trees())
def test_once_trains_every_sampled_token_exactly_once(tree: list[Turn]) -> None:
    assert trained(samples(FACTS, tree)) == dict.fromkeys(sampled(tree), 1)


@given(trees())
def test_every_trains_all_that_was_sampled(tree: list[Turn]) -> None:
    for sample in samples(FACTS, tree, "every"):
        assert sample.mask.tolist() == sample.sampled.tolist()


@given(trees(), st.sets(st.integers(0, 20)))
def test_filters_come_before_the_choice_of_where_a_turn_is_trained(tree: list[Turn], wanted: set[int]) -> None:
    found = samples(FACTS, tree, keep=lambda branch: branch.index in wanted)
    assert {sample.branch for sample in found} <= wanted
    assert trained(found) == dict.fromkeys(((span.turn_id, span.part) for s in found for span in s.spans), 1)


@given(trees(), shared_ways)
def test_json_round_trips_bit_for_bit(tree: list[Turn], shared: Shared) -> None:
    for sample in samples(FACTS, tree, shared):
        text = to_bytes(sample)
        again = from_json(text)
        assert to_bytes(again) == text
        assert json.loads(text) == sample.to_json()
        for name in ("tokens", "sampled", "mask", "logprobs"):
            ours, theirs = getattr(sample, name), getattr(again, name)
            assert (ours.dtype, ours.tobytes()) == (theirs.dtype, theirs.tobytes())
            assert not theirs.flags.writeable
        assert (again.spans, again.fork, again.notes) == (sample.spans, sample.fork, sample.notes)


# ----------------------------------------------------------------------------------------------------------- choices


def test_a_shared_turn_is_trained_in_the_main_branch() -> None:
    tree = [turn(call("a")), turn(call("b", "a")), turn(call("c", "a"))]
    older, main = samples(FACTS, tree)
    assert main.main
    assert older.mask.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]
    assert main.mask.tolist() == main.sampled.tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 1, 1]


def test_without_the_main_branch_the_next_one_trains_what_they_shared() -> None:
    def not_main(branch: Branch) -> bool:
        return not branch.main

    (older,) = samples(FACTS, [turn(call("a")), turn(call("b", "a")), turn(call("c", "a"))], keep=not_main)
    assert older.mask.tolist() == older.sampled.tolist()
    assert (older.branch, older.branches, older.main) == (0, 2, False)


def test_a_session_without_turns_gives_no_samples() -> None:
    assert samples(FACTS, []) == []


def test_a_turn_that_sampled_nothing_has_no_span() -> None:
    sample = only(turn(call("a"), 0, []))
    assert (sample.spans, sample.sampled.tolist()) == ((), [0, 0, 0])


def test_all_parts_but_the_last_with_ids_were_paused() -> None:
    sample = only(turn(call("a"), 0, [part(1), part(0), part(2), part(0)]))
    assert [(s.part, s.start, s.end, s.finish_reason, s.stop_reason) for s in sample.spans] == [
        (0, 3, 4, "paused", None),
        (2, 4, 6, "stop", 99),
    ]


def test_rewards_are_those_of_the_branchs_own_turns() -> None:
    facts = msgspec.structs.replace(FACTS, rewards={"a": 0.5, "b": None, "c": 1.0}, reward=2.0)
    older, main = samples(facts, [turn(call("a")), turn(call("b", "a")), turn(call("c", "a"))])
    assert (older.rewards, main.rewards) == ({"a": 0.5, "b": None}, {"a": 0.5, "c": 1.0})


# -------------------------------------------------------------------------------------------------------------- JSON


def test_the_json_is_the_contracts_key_by_key() -> None:
    facts = msgspec.structs.replace(FACTS, group="g", group_size=8, state=State.COMPLETED, scores={"x": 1.0})
    sample = samples(facts, [turn(call("a", notes=[NoteKind.PREFILL]), finish="length")])[0]
    expected = {
        "schema": 1,
        "id": "s:a",
        "session_id": "s",
        "group": "g",
        "group_size": 8,
        "role": "train",
        "branch": 0,
        "branches": 1,
        "main": True,
        "leaf_turn_id": "a",
        "tokens": [1, 2, 3, 100, 101],
        "sampled": [0, 0, 0, 1, 1],
        "mask": [0, 0, 0, 1, 1],
        "logprobs": [0.0, 0.0, 0.0, float(np.float32(-0.1)), float(np.float32(-0.2))],
        "spans": [
            {
                "start": 3,
                "end": 5,
                "turn_id": "a",
                "choice": 0,
                "part": 0,
                "trained": True,
                "weight_version": "v1",
                "step": None,
                "version_source": None,
                "model": "policy",
                "engine": "scripted-0",
                "engine_kind": "scripted",
                "logprob_kind": "raw",
                "sampling": {
                    "temperature": 1.0,
                    "top_p": 1.0,
                    "top_k": 0,
                    "min_p": 0.0,
                    "presence_penalty": 0.0,
                    "frequency_penalty": 0.0,
                    "repetition_penalty": 1.0,
                    "seed": None,
                    "max_tokens": 9,
                    "min_tokens": 0,
                    "stop": ["x"],
                    "stop_token_ids": [],
                    "ignore_eos": False,
                    "logit_bias": {"7": -1.0},
                    "guide": None,
                },
                "constrained": False,
                "finish_reason": "length",
                "stop_reason": None,
                "sidecars": {},
            }
        ],
        "reward": None,
        "rewards": {},
        "scores": {"x": 1.0},
        "reward_revision": 0,
        "status": "completed",
        "truncated": "length",
        "versions": ["v1"],
        "notes": [{"kind": "prefill", "detail": ""}],
        "fork": None,
        "metadata": {},
    }
    assert json.dumps(json.loads(to_bytes(sample))) == json.dumps(expected)
    assert json.dumps(sample.to_json()) == json.dumps(expected)


@pytest.mark.parametrize(
    ("written", "mended"),
    [(b'"tokens":[1,', b'"tokens":[1.5,'), (b'"tokens":[1,', b'"tokens":['), (b'"sampled":[0,', b'"sampled":["0",')],
)
def test_a_line_that_is_no_sample_is_refused(written: bytes, mended: bytes) -> None:
    line = to_bytes(only(turn(call("a", context=ids(1, 2)))))
    assert written in line
    with pytest.raises(msgspec.ValidationError):
        from_json(line.replace(written, mended))
