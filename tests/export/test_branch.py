from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given

from stenograph.core import ForkReason, Note, NoteKind, Turn
from stenograph.export.branch import Branch, branches
from tests.export.trees import call, part, trees, turn


def paths(turns: Sequence[Turn]) -> list[list[str]]:
    return [[turn.id for turn in branch.turns] for branch in branches(turns)]


def main(turns: Sequence[Turn]) -> str:
    (branch,) = (branch for branch in branches(turns) if branch.main)
    return branch.leaf.id


def forks(turns: Sequence[Turn]) -> dict[str, ForkReason | None]:
    return {branch.leaf.id: branch.fork.reason if branch.fork else None for branch in branches(turns)}


def only(*turns: Turn) -> Branch:
    (branch,) = branches(turns)
    return branch


def test_a_session_without_turns_has_no_branches() -> None:
    assert branches([]) == ()


def test_there_is_one_branch_a_leaf_in_the_order_of_the_leaves() -> None:
    tree = [turn(call("a")), turn(call("b", "a")), turn(call("c", "a")), turn(call("d", "b"))]
    assert paths(tree) == [["a", "c"], ["a", "b", "d"]]
    assert [branch.index for branch in branches(tree)] == [0, 1]


def test_a_choice_that_nobody_continued_is_a_leaf() -> None:
    first = call("a", n=3)
    tree = [*(turn(first, choice) for choice in range(3)), turn(call("b", "a.1"))]
    assert paths(tree) == [["a"], ["a.2"], ["a.1", "b"]]


@given(trees())
def test_every_turn_is_on_a_branch_and_every_branch_is_a_path(tree: list[Turn]) -> None:
    found = branches(tree)
    assert {turn.id for branch in found for turn in branch.turns} == {turn.id for turn in tree}
    for branch in found:
        parents = [None, *(turn.id for turn in branch.turns[:-1])]
        assert [turn.call.parent for turn in branch.turns] == parents
        assert all(turn.call.parent != branch.leaf.id for turn in tree)


# ------------------------------------------------------------------------------------------------------------- main


@given(trees())
def test_exactly_one_branch_is_main(tree: list[Turn]) -> None:
    assert sum(branch.main for branch in branches(tree)) == bool(tree)


def test_main_holds_the_latest_turn() -> None:
    assert main([turn(call("a")), turn(call("b", "a")), turn(call("c", "a", fork=ForkReason.BRANCHED))]) == "c"


def test_a_later_conversation_is_never_main() -> None:
    assert main([turn(call("a")), turn(call("b", fork=ForkReason.NEW_CONVERSATION)), turn(call("c", "b"))]) == "a"


@pytest.mark.parametrize("reason", [reason for reason in ForkReason if reason is not ForkReason.NEW_CONVERSATION])
def test_a_turn_whose_prompt_had_to_begin_anew_continues_its_conversation(reason: ForkReason) -> None:
    side = turn(call("side", fork=ForkReason.NEW_CONVERSATION))
    assert main([turn(call("a")), side, turn(call("b", after="a", fork=reason))]) == "b"
    assert main([turn(call("a")), side, turn(call("b", after="side", fork=reason))]) == "a"


def test_where_only_the_tokens_go_on_they_say_which_conversation_it_is() -> None:
    by_ids = msgspec.structs.replace(call("b", "a"), after=None)
    assert main([turn(call("a")), turn(call("c", "a")), turn(by_ids)]) == "b"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (["system", "task"], "again"),
        (["system", "summary"], "again"),
        (["side system", "side task"], "a"),
        (["side system", "other"], "a"),
        (["system", "another side task"], "a"),
        (["never seen"], "again"),
    ],
)
def test_a_fork_that_continues_no_turn_belongs_where_it_shares_most(messages: list[str], expected: str) -> None:
    tree = [
        turn(call("a", messages=["system", "task"])),
        turn(call("side", fork=ForkReason.NEW_CONVERSATION, messages=["side system", "side task"])),
        turn(call("third", fork=ForkReason.NEW_CONVERSATION, messages=["system", "another side task"])),
        turn(call("again", fork=ForkReason.RESAMPLED, messages=messages)),
    ]
    assert main(tree) == expected


def test_of_the_choices_of_the_latest_call_the_first_is_main() -> None:
    last = call("b", "a", n=2)
    assert main([turn(call("a")), turn(last, 0), turn(last, 1)]) == "b"


# ------------------------------------------------------------------------------------------------------------ forks


def test_a_fork_shows_on_the_branch_that_it_began() -> None:
    tree = [turn(call("a")), turn(call("b", "a")), turn(call("c", "a", fork=ForkReason.HISTORY_EDITED))]
    assert forks(tree) == {"b": None, "c": ForkReason.HISTORY_EDITED}


def test_a_fork_that_main_shares_is_mains_alone() -> None:
    tree = [
        turn(call("a")),
        turn(call("b", "a", fork=ForkReason.TOOLS_CHANGED)),
        turn(call("c", "b", fork=ForkReason.BRANCHED)),
        turn(call("d", "b")),
    ]
    assert forks(tree) == {"d": ForkReason.TOOLS_CHANGED, "c": ForkReason.BRANCHED}


# ----------------------------------------------------------------------------------- what a branch says of itself


def test_notes_are_those_of_calls_and_of_choices_in_order() -> None:
    own = msgspec.structs.replace(turn(call("a", notes=[NoteKind.PREFILL])), notes=(Note(NoteKind.TOOL_CALL_UNPARSED),))
    branch = only(own, turn(call("b", "a", notes=[NoteKind.FIELD_IGNORED])))
    kinds = [note.kind for note in branch.notes]
    assert kinds == [NoteKind.PREFILL, NoteKind.TOOL_CALL_UNPARSED, NoteKind.FIELD_IGNORED]


def test_versions_are_distinct_in_order_of_use_and_unknown_ones_left_out() -> None:
    parts = [part(1, version="v2"), part(1, version=None), part(0, version="unused"), part(1, version="v1")]
    assert only(turn(call("a"), 0, parts), turn(call("b", "a"), 0, [part(1, version="v2")])).versions == ("v2", "v1")


def test_how_a_branch_ended_early_is_how_its_leaf_did() -> None:
    assert only(turn(call("a"), finish="stop")).truncated is None
    assert only(turn(call("a"), finish="length")).truncated == "length"
    assert only(turn(call("a"), finish="abort")).truncated == "aborted"
    assert only(turn(call("a"), finish="length", limit="budget")).truncated == "budget"
    assert only(turn(call("a"), finish="length", limit="context"), turn(call("b", "a"))).truncated is None


def sides(turns: Sequence[Turn]) -> list[str]:
    return [branch.leaf.id for branch in branches(turns) if branch.side]


def test_a_conversation_of_one_call_beside_a_longer_one_is_a_side_call() -> None:
    title = turn(call("title", tools="none"))
    talk = turn(call("a", fork=ForkReason.NEW_CONVERSATION))
    assert sides([title, talk]) == []
    tree = [title, talk, turn(call("b", "a"))]
    assert sides(tree) == ["title"]
    assert main(tree) == "b"
    assert sides([turn(call("helper")), *tree[1:]]) == []


def test_what_forks_within_a_conversation_is_no_side_call() -> None:
    tree = [turn(call("a")), turn(call("b", "a")), turn(call("c", "a", fork=ForkReason.BRANCHED))]
    assert sides(tree) == []
    again = turn(call("d", fork=ForkReason.TEMPLATE_REWROTE_HISTORY, after="b"))
    assert sides([*tree, again]) == []
