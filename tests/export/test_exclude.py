"""What a rule leaves out, what it says it left out, and what is no rule."""

from __future__ import annotations

import msgspec
import pytest

from stenograph.core import ForkReason, Sampling, SessionFacts, Turn
from stenograph.errors import ConfigError
from stenograph.export.exclude import Exclusion
from stenograph.export.sample import samples
from tests.export.trees import FACTS, call, turn

JUDGE = msgspec.structs.replace(FACTS, role="judge")
REWARDED = msgspec.structs.replace(FACTS, rewards={"a": None, "b": 0.0})


def probing(turn: Turn) -> Turn:
    short = msgspec.structs.replace(turn.call, sampling=Sampling(max_tokens=1))
    return msgspec.structs.replace(turn, call=short)


TREE = [
    probing(turn(call("probe", tools="none"), finish="length")),
    turn(call("a", fork=ForkReason.NEW_CONVERSATION)),
    turn(call("b", "a")),
    turn(call("c", "a", fork=ForkReason.BRANCHED), finish="length"),
    turn(call("d", "b")),
]
RULES: list[tuple[SessionFacts, list[str], list[str], dict[str, int]]] = [
    (FACTS, [], ["probe", "c", "d"], {}),
    (FACTS, ["side-calls"], ["c", "d"], {"side-calls": 1}),
    (FACTS, ["max-tokens=1"], ["c", "d"], {"max-tokens=1": 1}),
    (FACTS, ["max-tokens=0"], ["probe", "c", "d"], {}),
    (FACTS, ["fork=branched"], ["probe", "d"], {"fork=branched": 1}),
    (FACTS, ["truncated"], ["d"], {"truncated": 2}),
    (FACTS, ["side-calls", "truncated"], ["d"], {"side-calls": 1, "truncated": 1}),
    (FACTS, ["role=judge"], ["probe", "c", "d"], {}),
    (JUDGE, ["role=judge"], [], {"role=judge": 3}),
    (FACTS, ["unrewarded"], [], {"unrewarded": 3}),
    (REWARDED, ["unrewarded"], ["probe", "c", "d"], {}),
]


@pytest.mark.parametrize(("facts", "rules", "left", "struck"), RULES)
def test_a_rule_leaves_out_what_it_is_about_and_counts_it(
    facts: SessionFacts, rules: list[str], left: list[str], struck: dict[str, int]
) -> None:
    exclusion = Exclusion(rules)
    found = samples(facts, TREE, keep=exclusion.keep(facts))
    assert [sample.leaf_turn_id for sample in found] == left
    assert exclusion.struck == {f"--exclude {rule}": branches for rule, branches in struck.items()}


def test_only_the_main_branch_is_left_where_that_is_asked_for() -> None:
    exclusion = Exclusion(["fork=branched"], main_only=True)
    assert [one.leaf_turn_id for one in samples(FACTS, TREE, keep=exclusion.keep(FACTS))] == ["d"]
    assert exclusion.struck == {"--exclude fork=branched": 1, "--branches main": 1}


def test_a_shared_turn_is_trained_in_a_branch_that_is_there() -> None:
    exclusion = Exclusion(["fork=branched"])
    (sample,) = [one for one in samples(FACTS, TREE, keep=exclusion.keep(FACTS)) if one.main]
    assert [(span.turn_id, span.trained) for span in sample.spans] == [("a", True), ("b", True), ("d", True)]


@pytest.mark.parametrize("rule", ["", "titles", "side-calls=1", "max-tokens", "max-tokens=few", "fork=spoon", "role=x"])
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match="--exclude"):
        Exclusion([rule])
