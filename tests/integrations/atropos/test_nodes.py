"""A session's tree as Atropos' nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given

from stenograph.core import Turn
from stenograph.export.sample import samples
from stenograph.integrations.atropos.nodes import MASKED, NO_LOGPROB, SequenceNode, by_text, in_list, state
from tests.export.trees import FACTS, call, ids, part, trees, turn


class Letters:
    """Every id is spelt by itself; 9 is a stop token."""

    special: frozenset[int] = frozenset({9})

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(f"[{id}]" for id in ids)

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        return []


def check(node: SequenceNode) -> None:
    assert len(node.tokens) == len(node.masked_tokens) == len(node.logprobs)
    for token, label, logprob in zip(node.tokens, node.masked_tokens, node.logprobs, strict=True):
        assert (label == MASKED) == (logprob == NO_LOGPROB)
        assert label in (MASKED, token)


@given(trees())
def test_the_list_is_every_branch_with_all_that_was_sampled_on_it(turns: list[Turn]) -> None:
    nodes = in_list(turns, Letters())
    branches = samples(FACTS, turns, "every")
    told = [(node.tokens, node.masked_tokens) for node in nodes]
    wanted = [(sample.tokens.tolist(), np.where(sample.sampled, sample.tokens, MASKED).tolist()) for sample in branches]
    assert sorted(told) == sorted(wanted)
    for node in nodes:
        check(node)


@given(trees())
def test_the_tree_trains_each_turn_once(turns: list[Turn]) -> None:
    nodes = by_text(turns, Letters())
    assert len(nodes) == len(turns)
    for recorded, node in zip(turns, nodes.values(), strict=True):
        check(node)
        assert [label for label in node.masked_tokens if label != MASKED] == recorded.sampled.tolist()
        told = [logprob for logprob in node.logprobs if logprob != NO_LOGPROB]
        assert np.array_equal(np.array(told, np.float32), recorded.logprobs)


def test_the_first_turn_that_extends_a_node_takes_its_place_and_others_are_appended() -> None:
    first = call("a", n=2)
    one, two = turn(first), turn(first, 1)
    extends_one, again, extends_two = (turn(call(id, parent)) for id, parent in (("b", "a"), ("c", "a"), ("d", "a.1")))
    lengths = [len(node.tokens) for node in in_list([one, two, extends_two, extends_one, again], Letters())]
    assert lengths == [10, 10, 10]
    kept = in_list([one, two, extends_two], Letters())
    assert [len(node.tokens) for node in kept] == [5, 10]


def test_turns_of_one_text_have_a_key_each_and_the_first_has_the_text() -> None:
    first = call("a", n=2)
    nodes = by_text([turn(first), turn(first, 1)], Letters())
    text = "[1][2][3][100][101]"
    assert list(nodes) == [text, f"{text}\0a.1"]
    assert {node.full_text for node in nodes.values()} == {text}


def test_what_ended_the_last_reply_is_a_token_and_no_text() -> None:
    said = turn(call("a", context=ids(9, 1)), parts=[part(2, first=8)])
    [node] = in_list([said], Letters())
    assert node.tokens == [9, 1, 8, 9]
    assert node.full_text == "[9][1][8]"


def test_a_logprob_is_the_shortest_decimal_of_what_was_reported() -> None:
    [node] = in_list([turn(call("a"))], Letters())
    assert node.logprobs == [NO_LOGPROB] * 3 + [-0.1, -0.2]


def test_the_state_has_the_shape_of_its_mode() -> None:
    turns = [turn(call("a"))]
    assert state(turns, Letters(), track_tree=False) == {"nodes": in_list(turns, Letters())}
    tree = state(turns, Letters(), track_tree=True)
    assert tree["sequences"] == tree["tree"] == by_text(turns, Letters())
