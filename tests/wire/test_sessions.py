"""The bodies of the session calls: what they default to, what they refuse, and by which name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import pytest

from stenograph.core import State
from stenograph.errors import CallerError
from stenograph.wire import body, sessions
from stenograph.wire.sampling import given, given_by_session


def test_every_field_of_a_new_session_is_optional() -> None:
    for raw in (b"", b" \n", b"{}"):
        made = sessions.create(raw)
        assert made == sessions.CreateSession()
        assert (made.role, made.group, made.metadata, given(made.sampling.force)) == ("train", None, {}, {})


def test_a_session_with_everything() -> None:
    made = sessions.create(
        json.dumps(
            {
                "id": "run:1",
                "group": "task-17",
                "group_size": 8,
                "role": "eval",
                "history": "verbatim",
                "reasoning": "strict",
                "sampling": {
                    "defaults": {"top_k": -1, "stop": "x"},
                    "force": {"temperature": 1, "logit_bias": {"5": 1}},
                },
                "budget": {"turns": 3, "tokens": 900},
                "ttl": 60,
                "metadata": {"a": [1]},
            }
        ).encode()
    )
    assert (made.id, made.group, made.group_size, made.role) == ("run:1", "task-17", 8, "eval")
    assert given(made.sampling.defaults) == {"top_k": 0, "stop": ("x",)}
    assert given(made.sampling.force) == {"temperature": 1.0, "logit_bias": {5: 1.0}}
    assert (made.budget.turns, made.budget.tokens, made.ttl) == (3, 900, 60.0)


def test_what_a_session_forces_survives_being_kept_as_json() -> None:
    kept: dict[str, Any] = json.loads('{"logit_bias": {"5": 1}, "stop": ["a"], "max_completion_tokens": 7}')
    assert given_by_session(kept) == {"logit_bias": {5: 1.0}, "stop": ("a",), "max_tokens": 7}
    with pytest.raises(CallerError, match=r"sampling\.force\.n: there is no such field"):
        given_by_session({"n": 2}, "sampling.force")


CREATE, REWARD, FINISH, WEIGHTS = sessions.create, sessions.reward, sessions.finish, sessions.weights
WRONG: list[tuple[Callable[[bytes], object], dict[str, Any], str]] = [
    (CREATE, {"groups": "x"}, "groups"),
    (CREATE, {"id": ""}, "id"),
    (CREATE, {"id": "a b"}, "id"),
    (CREATE, {"id": "a/b"}, "id"),
    (CREATE, {"id": ".."}, "id"),
    (CREATE, {"id": "a\n"}, "id"),
    (CREATE, {"id": "é"}, "id"),
    (CREATE, {"id": "x" * 129}, "id"),
    (CREATE, {"group": "a/b"}, "group"),
    (CREATE, {"group_size": 0}, "group_size"),
    (CREATE, {"role": "teacher"}, "role"),
    (CREATE, {"history": "both"}, "history"),
    (CREATE, {"reasoning": "loose"}, "reasoning"),
    (CREATE, {"sampling": {"default": {}}}, "sampling.default"),
    (CREATE, {"sampling": {"force": {"n": 2}}}, "sampling.force.n"),
    (CREATE, {"sampling": {"force": {"temperature": -1}}}, "sampling.force.temperature"),
    (CREATE, {"sampling": {"force": {"max_tokens": 1, "max_completion_tokens": 2}}}, "max_tokens"),
    (CREATE, {"budget": {"turns": 0}}, "budget.turns"),
    (CREATE, {"ttl": 0}, "ttl"),
    (CREATE, {"metadata": []}, "metadata"),
    (REWARD, {}, "reward"),
    (REWARD, {"reward": "1"}, "reward"),
    (REWARD, {"reward": 1, "turn": "t"}, "turn"),
    (REWARD, {"reward": 1, "scores": {"a": None}}, "scores"),
    (FINISH, {"status": "open"}, "status"),
    (FINISH, {"error": 3}, "error"),
    (WEIGHTS, {}, "version"),
    (WEIGHTS, {"version": ""}, "version"),
    (WEIGHTS, {"version": "v", "step": -1}, "step"),
]


@pytest.mark.parametrize(("read", "fields", "param"), WRONG, ids=[f"{fields}"[:40] for _, fields, _ in WRONG])
def test_a_wrong_field_is_named(read: Callable[[bytes], object], fields: dict[str, Any], param: str) -> None:
    with pytest.raises(CallerError) as caught:
        read(json.dumps(fields).encode())
    assert (caught.value.status, caught.value.param) == (400, param)


@pytest.mark.parametrize("raw", [b"", b"{", b'{"reward": NaN}', b'{"reward": Infinity}'])
def test_a_reward_needs_a_body_of_json(raw: bytes) -> None:
    with pytest.raises(CallerError, match="not JSON"):
        sessions.reward(raw)


def test_a_reward_is_finite() -> None:
    with pytest.raises(CallerError, match="reward: number out of range"):
        sessions.reward(b'{"reward": 1e999}')


def test_rewards_and_ends() -> None:
    assert sessions.reward(b'{"reward": null}').reward is None
    graded = sessions.reward(b'{"reward": 1, "turn_id": "t", "scores": {"style": 0.5}, "metadata": {"by": "us"}}')
    assert (graded.reward, graded.turn_id, graded.scores, graded.metadata) == (1.0, "t", {"style": 0.5}, {"by": "us"})
    assert sessions.finish(b"") == sessions.Finish(status="completed", error=None)
    assert sessions.finish(b'{"status": "failed", "error": "boom"}').status == "failed"
    assert sessions.weights(b'{"version": "v7"}') == sessions.Weights(version="v7", step=None)


@pytest.mark.parametrize("id", ["a", "0", "A-1_b:c.d", "...", "x" * 128])
def test_ids(id: str) -> None:
    assert sessions.create(json.dumps({"id": id}).encode()).id == id


def test_a_query_is_text() -> None:
    read = body.query({"state": "open", "since": "17.5", "limit": "3", "group": "g"}, sessions.SessionFilter)
    assert read == sessions.SessionFilter(group="g", state=State.OPEN, since=17.5, limit=3)
    assert body.query({}, sessions.SamplesQuery).shared == "once"
    with pytest.raises(CallerError) as caught:
        body.query({"limit": "many"}, sessions.SessionFilter)
    assert caught.value.param == "limit"


def test_a_session_is_seen_as_the_contract_has_it() -> None:
    fields = [field.encode_name for field in msgspec.structs.fields(sessions.SessionView)]
    assert fields == [
        "id",
        "group",
        "role",
        "state",
        "reward",
        "scores",
        "turns",
        "branches",
        "tokens",
        "sampled_tokens",
        "forks",
        "notes",
        "attempts",
        "versions",
        "created_at",
        "touched_at",
    ]
    turn = [field.encode_name for field in msgspec.structs.fields(sessions.TurnView)]
    assert turn == [
        "id",
        "parent",
        "choice",
        "protocol",
        "context_tokens",
        "sampled_tokens",
        "finish_reason",
        "fork",
        "notes",
        "reward",
        "created_at",
    ]


@pytest.mark.parametrize(
    ("read", "sent", "told"),
    [
        (CREATE, {"role": "trian"}, "role: there is no such choice as 'trian': expected eval, judge or train"),
        (CREATE, {"history": "x"}, "history: there is no such choice as 'x': expected template or verbatim"),
        (FINISH, {"status": 1}, "status: expected string, got integer"),
    ],
)
def test_where_there_is_a_choice_the_words_are_told(
    read: Callable[[bytes], object], sent: dict[str, Any], told: str
) -> None:
    with pytest.raises(CallerError) as refused:
        read(json.dumps(sent).encode())
    assert refused.value.message == told


class Part(msgspec.Struct):
    kind: Literal["a", "b"]


class Whole(msgspec.Struct):
    parts: list[Part | None] = []
    named: dict[str, Part] = {}


@pytest.mark.parametrize("path", ["parts[1].kind", "named[...].kind"])
def test_the_words_are_found_inside_of_lists_and_objects(path: str) -> None:
    wrong: dict[str, Any] = {"parts": [None, {"kind": "c"}]} if "parts" in path else {"named": {"x": {"kind": "c"}}}
    with pytest.raises(CallerError, match="there is no such choice as 'c': expected a or b"):
        body.convert(wrong, Whole)
