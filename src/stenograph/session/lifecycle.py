"""A session's life: open, then one of the ends, for good. Every change gives new facts; nothing is changed in place."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stenograph.core import JSON, Attempt, Budget, SessionFacts, State
from stenograph.errors import CallerError, Conflict, NotFound
from stenograph.session.tree import Tree

ENDS = frozenset({State.COMPLETED, State.FAILED, State.TIMEOUT, State.CANCELLED, State.EXPIRED})
MOVES: dict[State, frozenset[State]] = {State.OPEN: ENDS, **dict.fromkeys(ENDS, frozenset[State]())}
"""From each state, where a session may go."""


def check_open(facts: SessionFacts) -> None:
    if facts.state is not State.OPEN:
        raise Conflict(f"session {facts.id} is {facts.state}: it takes no more calls", code="session_finished")


def ended(facts: SessionFacts, state: State, error: str | None, now: float) -> SessionFacts:
    """Ending again in the same way changes nothing, so a call may be repeated."""
    if state is facts.state:
        return facts
    if state not in MOVES[facts.state]:
        raise Conflict(f"session {facts.id} is {facts.state} and cannot become {state}", code="session_finished")
    return msgspec.structs.replace(facts, state=state, error=error, touched_at=now)


def rewarded(
    facts: SessionFacts,
    reward: float | None,
    *,
    turn_id: str | None,
    scores: Mapping[str, float],
    metadata: Mapping[str, JSON],
    known_turns: Mapping[str, object],
) -> SessionFacts:
    """The latest counts. Allowed after the end too: judges are slow."""
    if turn_id is not None and turn_id not in known_turns:
        raise NotFound(f"session {facts.id} has no turn {turn_id}", param="turn_id")
    return msgspec.structs.replace(
        facts,
        reward=reward if turn_id is None else facts.reward,
        rewards=facts.rewards if turn_id is None else {**facts.rewards, turn_id: reward},
        scores={**facts.scores, **scores},
        reward_metadata={**facts.reward_metadata, **metadata},
        reward_revision=facts.reward_revision + 1,
    )


def attempted(facts: SessionFacts, attempt: Attempt, now: float) -> SessionFacts:
    attempts = {**facts.attempts, attempt: facts.attempts.get(attempt, 0) + 1}
    return msgspec.structs.replace(facts, attempts=attempts, touched_at=now)


def check_budget(budget: Budget, tree: Tree, *, under_way: int, n: int) -> int | None:
    """How many tokens each of `n` choices may sample; None: as many as wanted. Calls `under_way` will be turns."""
    if budget.turns is not None and len(tree.calls) + under_way >= budget.turns:
        raise CallerError(f"the session's budget of {budget.turns} turns is used up", code="budget_exhausted")
    if budget.tokens is None:
        return None
    left = budget.tokens - tree.sampled_tokens
    if left < n:
        message = f"the session's budget of {budget.tokens} tokens is used up"
        raise CallerError(message + (f": {left} left for {n} choices" if left > 0 else ""), code="budget_exhausted")
    return left // n
