"""What a trainer calls for complete groups: lease, train, acknowledge. `Gateway.groups` is the same in this process."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from stenograph.core import Batch
from stenograph.export.sample import Shared, samples
from stenograph.live import LiveSession
from stenograph.origin import staleness
from stenograph.server.desk import Desk
from stenograph.server.session_calls import answer, body_of
from stenograph.wire import batches


async def lease_batches(desk: Desk, request: Request) -> Response:
    wanted = batches.lease(await body_of(desk, request))
    leased = await desk.deliveries.lease(wanted.batches, wanted.seconds, too_old(desk, wanted.max_staleness))
    return answer(batches.BatchesLeased(tuple(shown(desk, batch, wanted.shared) for batch in leased)))


async def acknowledge_batches(desk: Desk, request: Request) -> Response:
    leases = batches.acknowledge(await body_of(desk, request)).leases
    in_time = dict(zip(leases, await desk.deliveries.acknowledge(leases), strict=True))
    return answer(
        batches.Acknowledged(
            tuple(lease for lease in in_time if in_time[lease]), tuple(lease for lease in in_time if not in_time[lease])
        )
    )


def too_old(desk: Desk, max_staleness: int | None) -> Callable[[str], bool]:
    def is_too_old(session_id: str) -> bool:
        turns = desk.registry.must(session_id).tree.turns.values()
        return max_staleness is not None and staleness(turns, desk.house.weights) > max_staleness

    return is_too_old


def shown(desk: Desk, batch: Batch, shared: Shared) -> batches.LeasedBatch:
    there = (desk.registry.get(id) for id in batch.sessions)
    return batches.LeasedBatch(
        id=batch.id,
        lease=batch.lease or "",
        leased_until=batch.leased_until or 0.0,
        deliveries=batch.deliveries,
        group=batch.group,
        group_size=batch.size,
        completed_at=batch.completed_at,
        sessions=tuple(_session(session, shared) for session in there if session is not None),
        stale=batch.stale,
    )


def _session(session: LiveSession, shared: Shared) -> batches.BatchSession:
    return batches.BatchSession(
        id=session.facts.id,
        state=session.facts.state,
        reward=session.facts.reward,
        error=session.facts.error,
        samples=tuple(samples(session.facts, list(session.tree.turns.values()), shared)),
    )
