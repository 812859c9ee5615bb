"""What is compared with what, and what is not compared at all."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from stenograph.audit.rescoring import Compared, NotCompared, by_weights, compared, why_not, worst
from stenograph.core import NEUTRAL, Sample, Span
from stenograph.engine.scoring import Scored
from stenograph.export.sample import samples
from tests.export.trees import FACTS, call, part, turn


def sample(*versions: str | None) -> Sample:
    """A turn with a part of three tokens for each version. Its sampling holds a bias and a stop."""
    parts = [part(3, version=version) for version in versions]
    (one,) = samples(FACTS, [turn(call("a"), parts=parts)])
    return one


def scored(one: Sample, shift: float = 0.0) -> Scored:
    none = np.zeros((len(one.tokens) - 1, 0))
    return Scored(1, one.logprobs[1:] - np.float32(shift), none.astype(np.int32), none.astype(np.float32))


def span(**changes: Any) -> Span:
    plain: Span = msgspec.structs.replace(sample("1").spans[0], sampling=msgspec.to_builtins(NEUTRAL))
    return msgspec.structs.replace(plain, **changes)


def test_what_scores_the_same_differs_by_nothing() -> None:
    one = sample("1", "2")
    verdicts = list(compared(one, scored(one), None))
    assert [type(verdict) for verdict in verdicts] == [Compared, Compared]
    assert [verdict.mean for verdict in verdicts if isinstance(verdict, Compared)] == [0.0, 0.0]


def test_the_table_has_a_line_a_version() -> None:
    first, second = sample("1"), sample("2")
    near, far = compared(first, scored(first, 0.01), None), compared(second, scored(second, 0.25), None)
    spans = [one for one in (*near, *far) if isinstance(one, Compared)]
    one, two = by_weights(spans, 0.05)
    assert (one.version, one.spans, one.tokens, one.beyond) == ("1", 1, 3, 0)
    assert (two.version, two.spans, two.tokens, two.beyond) == ("2", 1, 3, 1)
    assert (one.mean, two.worst_span, two.p99, two.max) == pytest.approx((0.01, 0.25, 0.25, 0.25), abs=1e-5)


def test_the_worst_tokens_come_first() -> None:
    one = sample("1")
    differing = scored(one)
    differing.logprobs[4 - differing.start] = -5.0
    (verdict,) = compared(one, differing, None)
    assert isinstance(verdict, Compared)
    first, *_ = worst([verdict], 2)
    assert (first.position, first.rescored) == (4, -5.0)
    assert first.recorded == np.float32(one.logprobs[4])


def test_other_weights_are_not_compared() -> None:
    one = sample("1", "2")
    old, new = compared(one, scored(one), "2")
    assert isinstance(old, NotCompared)
    assert old.why == "sampled under weights 1, and the engine has 2"
    assert isinstance(new, Compared)


def test_a_turn_that_branches_share_is_compared_once() -> None:
    tree = [turn(call("a")), turn(call("b", "a")), turn(call("c", "a"))]
    verdicts = [verdict for one in samples(FACTS, tree) for verdict in compared(one, scored(one), None)]
    assert sorted(verdict.span.turn_id for verdict in verdicts) == ["a", "b", "c"]


def test_too_few_scores_are_said() -> None:
    one = sample("1")
    whole = scored(one)
    short = Scored(1, whole.logprobs[:-1], whole.top_ids[:-1], whole.top_logprobs[:-1])
    (verdict,) = compared(one, short, None)
    assert isinstance(verdict, NotCompared)


BIASED = {"logit_bias": {"7": -1.0}}


@pytest.mark.parametrize(
    ("kind", "sampling", "engine_kind", "comparable"),
    [
        ("raw", {"temperature": 0.7, "top_p": 0.9} | BIASED, "vllm", True),
        ("raw", BIASED, "sglang", False),
        ("temperature", {}, "sglang", True),
        ("temperature", {"temperature": 0.0}, "sglang", True),
        ("temperature", {"top_p": 0.9}, "sglang", True),
        ("temperature", {"temperature": 0.7}, "sglang", False),
        ("temperature", {"presence_penalty": 0.7}, "sglang", False),
        ("processed", {}, "vllm", True),
        ("processed", {"top_k": 5}, "vllm", False),
        ("raw", {"guide": {"kind": "json"}}, "vllm", False),
    ],
)
def test_only_the_same_kind_of_logprob_is_compared(
    kind: Any, sampling: dict[str, Any], engine_kind: str, comparable: bool
) -> None:
    neutral = msgspec.json.decode(msgspec.json.encode(NEUTRAL))
    one = span(logprob_kind=kind, engine_kind=engine_kind, sampling=neutral | sampling)
    assert (why_not(one, None) is None) is comparable
