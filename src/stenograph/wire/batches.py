"""The calls of a trainer that takes complete groups: what it sends, and what it is answered."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from stenograph.core import Sample, State, Value
from stenograph.wire import body
from stenograph.wire.sessions import Body, Positive, Shared, or_empty

MINUTES = 600.0
"""Seconds of a lease, unless it says otherwise: longer than most optimizer steps, shorter than a night."""
Steps: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Lasting: TypeAlias = Annotated[float, Meta(gt=0, le=1e6)]


class LeaseBatches(Body):
    batches: Positive = 1
    """At most."""
    seconds: Lasting = MINUTES
    """After which they are given to another, unless they were acknowledged."""
    max_staleness: Steps | None = None
    """How far the weights may have moved on since a session's oldest token; None: as far as they like."""
    shared: Shared = "once"


class Acknowledge(Body):
    leases: tuple[str, ...]


class BatchSession(Value, kw_only=True):
    id: str
    state: State
    """How it ended: a failed one counts as the others do."""
    reward: float | None
    error: str | None
    samples: tuple[Sample, ...]
    """One a branch; none where nothing was sampled."""


class LeasedBatch(Value, kw_only=True):
    id: str
    """The same at each delivery."""
    lease: str
    """Of this delivery; by it the batch is acknowledged."""
    leased_until: float
    """Unix seconds, as `completed_at`."""
    deliveries: int
    """This one included."""
    group: str
    group_size: int
    completed_at: float
    sessions: tuple[BatchSession, ...]
    """In the order in which they ended."""
    stale: tuple[str, ...]
    """Sessions that are not among them any more, because they were too old."""


class BatchesLeased(Value):
    batches: tuple[LeasedBatch, ...]
    """None where nothing waits: ask again later."""


class Acknowledged(Value):
    acknowledged: tuple[str, ...]
    """Leases that were in time; also those that were acknowledged before."""
    lost: tuple[str, ...]
    """Leases that ran out, and whose batch is another's by now, or was dropped."""


_LEASE = msgspec.json.Decoder(LeaseBatches)
_ACKNOWLEDGE = msgspec.json.Decoder(Acknowledge)


def lease(raw: bytes) -> LeaseBatches:
    return or_empty(raw, _LEASE)


def acknowledge(raw: bytes) -> Acknowledge:
    return body.decode(raw, _ACKNOWLEDGE)
