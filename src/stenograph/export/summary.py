"""What a session and a turn look like from outside: S and T of CONTRACT 3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from stenograph.core import JSON, Attempt, Call, Note, SessionFacts, Turn
from stenograph.export.branch import branches, weight_versions


def session_summary(facts: SessionFacts, turns: Sequence[Turn]) -> dict[str, JSON]:
    """`turns` in commit order. What a call did counts once, however many choices it has."""
    calls = {turn.call.id: turn.call for turn in turns}.values()
    sampled = sum(turn.sampled_tokens for turn in turns)
    return {
        "id": facts.id,
        "group": facts.group,
        "role": facts.role,
        "state": facts.state.value,
        "reward": facts.reward,
        "scores": dict(facts.scores),
        "turns": len(turns),
        "branches": len(branches(turns)),
        "tokens": sampled + sum(len(call.context) for call in calls),
        "sampled_tokens": sampled,
        "forks": dict(Counter(call.fork.reason.value for call in calls if call.fork)),
        "notes": dict(Counter(note.kind.value for note in _notes(calls, turns))),
        "attempts": {attempt.value: facts.attempts.get(attempt, 0) for attempt in Attempt},
        "versions": list(weight_versions(turns)),
        "created_at": facts.created_at,
        "touched_at": facts.touched_at,
    }


def turn_summary(facts: SessionFacts, turn: Turn) -> dict[str, JSON]:
    call = turn.call
    return {
        "id": turn.id,
        "parent": call.parent,
        "choice": turn.choice,
        "protocol": call.protocol,
        "context_tokens": len(call.context),
        "sampled_tokens": turn.sampled_tokens,
        "finish_reason": turn.finish_reason,
        "fork": msgspec.to_builtins(call.fork),
        "notes": msgspec.to_builtins([*call.notes, *turn.notes]),
        "reward": facts.rewards.get(turn.id),
        "created_at": call.created_at,
    }


def _notes(calls: Iterable[Call], turns: Iterable[Turn]) -> list[Note]:
    return [note for call in calls for note in call.notes] + [note for turn in turns for note in turn.notes]
