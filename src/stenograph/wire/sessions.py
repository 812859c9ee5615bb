"""The session calls of CONTRACT 3: what a rollout worker sends, and what it is answered.

A worker's body is its own work, not an agent's: a field that nobody knows is a typing error there, and refused by name.
All bodies but a reward's may be empty.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, field

from stenograph.core import (
    JSON,
    Attempt,
    FinishReason,
    Fork,
    ForkReason,
    Note,
    NoteKind,
    Protocol,
    Role,
    Sample,
    State,
    Value,
)
from stenograph.wire import body
from stenograph.wire.body import Id
from stenograph.wire.sampling import OnlySamplingFields, given

T = TypeVar("T")

Positive: TypeAlias = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Shared: TypeAlias = Literal["once", "every"]
EndState: TypeAlias = Literal["completed", "failed", "timeout", "cancelled"]


class Body(Value, kw_only=True, forbid_unknown_fields=True): ...


# -------------------------------------------------------------------------------------------------------- what is sent


class SamplingPolicy(Body):
    defaults: OnlySamplingFields = OnlySamplingFields()
    force: OnlySamplingFields = OnlySamplingFields()


class BudgetFields(Body):
    turns: Positive | None = None
    tokens: Positive | None = None
    """Sampled tokens."""


class CreateSession(Body):
    id: Id | None = None
    """None: one is made up."""
    group: Id | None = None
    group_size: Positive | None = None
    role: Role = "train"
    history: Literal["template", "verbatim"] | None = None
    """None: the gateway's own setting, as for `reasoning`."""
    reasoning: Literal["restore", "strict"] | None = None
    sampling: SamplingPolicy = SamplingPolicy()
    budget: BudgetFields = BudgetFields()
    ttl: Annotated[float, Meta(gt=0)] | None = None
    """Seconds without a call."""
    metadata: dict[str, JSON] = field(default_factory=dict)


class Reward(Body):
    reward: float | None
    """null takes an earlier one back."""
    turn_id: Id | None = None
    """None: the reward is the session's."""
    scores: dict[str, float] = field(default_factory=dict)
    metadata: dict[str, JSON] = field(default_factory=dict)


class Finish(Body):
    """Of a session, or of each session of a group."""

    status: EndState = "completed"
    error: str | None = None


class Weights(Body):
    version: Annotated[str, Meta(min_length=1)]
    step: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class SessionFilter(Body):
    """The query of `GET /sessions`."""

    group: Id | None = None
    state: State | None = None
    since: Annotated[float, Meta(ge=0, le=2**63)] | None = None
    """Unix seconds: sessions that were touched then or later."""
    limit: Positive | None = None


class SamplesQuery(Body):
    """The query of `GET /sessions/{id}/samples`."""

    shared: Shared = "once"
    teacher: Id | None = None
    """With what this teacher says of them; what is not on record, it is asked."""


_CREATE = msgspec.json.Decoder(CreateSession)
_REWARD = msgspec.json.Decoder(Reward)
_FINISH = msgspec.json.Decoder(Finish)
_WEIGHTS = msgspec.json.Decoder(Weights)


def create(raw: bytes) -> CreateSession:
    decoded = or_empty(raw, _CREATE)
    for name in ("defaults", "force"):
        given(getattr(decoded.sampling, name))  # refuses fields that contradict each other now, not at the first call
    return decoded


def reward(raw: bytes) -> Reward:
    return body.decode(raw, _REWARD)


def finish(raw: bytes) -> Finish:
    return or_empty(raw, _FINISH)


def weights(raw: bytes) -> Weights:
    return body.decode(raw, _WEIGHTS)


def or_empty(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    return body.decode(raw.strip() or b"{}", decoder)


# ---------------------------------------------------------------------------------------------------- what is answered


class SessionOpened(Value):
    id: str
    base_url: str
    """For the OpenAI SDK: ends in /v1."""
    anthropic_base_url: str
    api_key: str
    """Said once, here; only its hash is kept."""


class SessionView(Value, kw_only=True):
    id: str
    group: str | None
    role: Role
    state: State
    reward: float | None
    scores: dict[str, float]
    turns: int
    branches: int
    tokens: int
    """Of the whole tree, each turn counted once."""
    sampled_tokens: int
    forks: dict[ForkReason, int]
    notes: dict[NoteKind, int]
    attempts: dict[Attempt, int]
    """Calls that left no turn, by reason; all reasons are there."""
    versions: tuple[str, ...]
    created_at: float
    """Unix seconds, as `touched_at`."""
    touched_at: float


class SessionList(Value):
    sessions: tuple[SessionView, ...]


class TurnView(Value, kw_only=True):
    id: str
    parent: str | None
    choice: int
    protocol: Protocol
    context_tokens: int
    """New in this turn's call, behind the parent's end."""
    sampled_tokens: int
    finish_reason: FinishReason
    fork: Fork | None
    notes: tuple[Note, ...]
    reward: float | None
    created_at: float


class TreeView(Value):
    turns: tuple[TurnView, ...]


class SampleList(Value):
    samples: tuple[Sample, ...]
