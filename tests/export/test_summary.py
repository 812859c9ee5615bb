from __future__ import annotations

import msgspec
from hypothesis import given

from stenograph.core import Attempt, ForkReason, Note, NoteKind, Turn
from stenograph.export.sample import samples
from stenograph.export.summary import session_summary, turn_summary
from tests.export.trees import FACTS, call, part, trees, turn


def test_a_session_is_summed_up_as_the_contract_has_it() -> None:
    facts = msgspec.structs.replace(FACTS, group="g", scores={"x": 1.0}, attempts={Attempt.CONTEXT_OVERFLOW: 1})
    wide = call("b", "a", n=2, fork=ForkReason.BRANCHED, notes=[NoteKind.PREFILL, NoteKind.PREFILL])
    unparsed = msgspec.structs.replace(turn(wide, 0), notes=(Note(NoteKind.TOOL_CALL_UNPARSED),))
    tree = [turn(call("a")), unparsed, turn(wide, 1, [part(4, version="v2")])]
    assert list(session_summary(facts, tree).items()) == [
        ("id", "s"),
        ("group", "g"),
        ("role", "train"),
        ("state", "open"),
        ("reward", None),
        ("scores", {"x": 1.0}),
        ("turns", 3),
        ("branches", 2),
        ("tokens", 3 + 2 + 3 + 2 + 4),
        ("sampled_tokens", 8),
        ("forks", {"branched": 1}),
        ("notes", {"prefill": 2, "tool_call_unparsed": 1}),
        (
            "attempts",
            {"disconnected": 0, "context_overflow": 1, "engine_error": 0, "refused": 0, "gateway_error": 0},
        ),
        ("versions", ["v1", "v2"]),
        ("created_at", 1.0),
        ("touched_at", 2.0),
    ]


def test_a_turn_is_summed_up_as_the_contract_has_it() -> None:
    facts = msgspec.structs.replace(FACTS, rewards={"b.1": 0.5})
    wide = call("b", "a", n=2, fork=ForkReason.BRANCHED, notes=[NoteKind.PREFILL])
    assert list(turn_summary(facts, turn(wide, 1)).items()) == [
        ("id", "b.1"),
        ("parent", "a"),
        ("choice", 1),
        ("protocol", "chat"),
        ("context_tokens", 3),
        ("sampled_tokens", 2),
        ("finish_reason", "stop"),
        ("fork", {"reason": "branched", "at": 1, "detail": ""}),
        ("notes", [{"kind": "prefill", "detail": ""}]),
        ("reward", 0.5),
        ("created_at", 1.0),
    ]


@given(trees())
def test_the_summary_agrees_with_the_samples_and_is_json(tree: list[Turn]) -> None:
    summary = session_summary(FACTS, tree)
    found = samples(FACTS, tree)
    assert summary["branches"] == len(found)
    assert summary["sampled_tokens"] == sum(int(sample.mask.sum()) for sample in found)
    assert msgspec.json.decode(msgspec.json.encode(summary)) == summary
    for of in tree:
        assert msgspec.json.decode(msgspec.json.encode(turn_summary(FACTS, of))) == turn_summary(FACTS, of)
