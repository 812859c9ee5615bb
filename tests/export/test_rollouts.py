"""Rollouts and groups: what counts once, what is refused, and when a group is complete."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from stenograph.core import Sample
from stenograph.errors import ConfigError
from stenograph.export.rollouts import advantages, groups, reward, rollouts, single, total_reward
from stenograph.export.sample import samples
from tests.export.trees import FACTS, call, turn

TREE = [turn(call("a")), turn(call("b", "a")), turn(call("c", "a"))]
"""Two branches, of which `a` is in both."""


def rollout(id: str, group: str | None = None, size: int | None = None, *, own: float | None = 1.0) -> list[Sample]:
    facts = msgspec.structs.replace(
        FACTS, id=id, group=group, group_size=size, reward=own, rewards={"a": 0.5, "b": None}
    )
    return samples(facts, TREE)


def test_a_rollout_is_a_session() -> None:
    found = rollouts([*rollout("one"), *rollout("two")])
    assert [[(sample.session_id, sample.branch) for sample in one] for one in found] == [
        [("one", 0), ("one", 1)],
        [("two", 0), ("two", 1)],
    ]


def test_a_group_is_there_as_soon_as_it_is_complete_and_what_never_is_comes_last() -> None:
    read: list[str] = []

    def stored() -> Iterator[Sample]:
        for id, group in (("1", "never"), ("2", "pair"), ("3", None), ("4", "pair"), ("5", "never")):
            read.append(id)
            yield from rollout(id, group, size=3 if group == "never" else 2)

    found = [([one[0].session_id for one in group], len(read)) for group in groups(stored())]
    assert found == [(["3"], 4), (["2", "4"], 5), (["1", "5"], 5)]


def test_an_evaluation_is_no_yardstick_for_what_is_trained() -> None:
    judged = [msgspec.structs.replace(sample, role="eval") for sample in rollout("judged", "g", size=2)]
    found = groups([*rollout("one", "g", size=2), *judged, *rollout("two", "g", size=2)])
    assert [[one[0].session_id for one in group] for group in found] == [["one", "two"], ["judged"]]


def test_sessions_that_disagree_on_the_size_are_no_group_together() -> None:
    two, three = [("1", 2), ("4", 2)], [("2", 3), ("3", 3), ("5", 3)]
    mixed = [sample for id, size in sorted(two + three) for sample in rollout(id, "g", size)]
    found = [[one[0].session_id for one in group] for group in groups(mixed)]
    assert found == [["1", "4"], ["2", "3", "5"]]


def test_a_shared_turns_reward_counts_once_and_so_does_a_rollout_of_two_branches() -> None:
    two, one = rollout("two", "g", own=2.0), rollout("one", "g", own=None)[:1]
    assert (total_reward(two, "x"), total_reward(one, "x")) == (2.5, 0.5)
    assert advantages([two, one], "x") == [1.0, -1.0]


def test_without_a_group_there_is_no_baseline() -> None:
    assert advantages([rollout("one")], "x") == [1.5]


def test_rows_that_would_count_as_rollouts_are_refused() -> None:
    assert len(list(single(rollout("one")[:1], "x"))) == 1
    with pytest.raises(ConfigError, match="session one has 2 branches, and x takes each for a rollout"):
        list(single(rollout("one"), "x"))


def test_a_reward_that_nobody_gave_is_not_made_up() -> None:
    bare = samples(FACTS, TREE)
    with pytest.raises(ConfigError, match="session one has rewards of turns alone, and x needs one of the session"):
        reward(rollout("one", own=None)[0], "x")
    with pytest.raises(ConfigError, match="session s has no reward, and x needs one"):
        reward(bare[0], "x")
    with pytest.raises(ConfigError, match="session s has no reward, and x needs one"):
        total_reward(bare, "x")
