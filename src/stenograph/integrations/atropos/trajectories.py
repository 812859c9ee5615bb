"""Groups to Atropos' trajectory API (`run-api`), none of them lost: each is on disk until a trainer has it.

async with Trajectories("http://127.0.0.1:8000", spool="runs/a/atropos", group_size=8, max_token_length=4096,
                        gateway=gateway) as atropos:
    …                        # every complete group of the gateway goes there by itself
    await atropos.drained()  # optional: what waits when the block ends is sent the next time
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import msgspec

from stenograph.core import Sample
from stenograph.errors import CallerError, ConfigError
from stenograph.export.formats.atropos import row
from stenograph.export.rollouts import single
from stenograph.gateway import Gateway, Group
from stenograph.integrations.atropos import scored
from stenograph.integrations.atropos.sender import LOOK_SECONDS, STOP_SECONDS, Sender, Terms
from stenograph.integrations.atropos.spool import REFUSED, Entry, Refused, Spool

log = logging.getLogger("stenograph")
LEASE_SECONDS = 30.0
"""From the gateway to the disk a group takes milliseconds; one that a killed process held is free again soon."""
Branches: TypeAlias = Literal["main"]


class Trajectories:
    def __init__(
        self,
        url: str,
        *,
        spool: str | os.PathLike[str],
        group_size: int,
        max_token_length: int,
        name: str = "stenograph",
        weight: float = 1.0,
        min_batch_allocation: float | None = None,
        ensure_scores_are_not_same: bool = True,
        gateway: Gateway | None = None,
        max_staleness: int | None = None,
        branches: Branches | None = None,
    ) -> None:
        """`spool`: a folder, this sender's alone. The next six are what an Atropos environment is configured with.
        `gateway`: whose complete groups are sent; `max_staleness` as for `gateway.groups`. `branches`: "main" sends the
        main branch of a session that has several, each of which Atropos would take for a rollout; None refuses it."""
        self._url = url
        self._folder = Path(spool)
        self._terms = Terms(
            desired_name=name,
            group_size=group_size,
            max_token_length=max_token_length,
            weight=weight,
            min_batch_allocation=min_batch_allocation,
        )
        self._differing_only = ensure_scores_are_not_same
        self._gateway = gateway
        self._max_staleness = max_staleness
        self._branches = branches
        self._working: list[asyncio.Task[None]] = []
        self._keeping: set[asyncio.Future[None]] = set()

    async def __aenter__(self) -> Self:
        self._spool = await asyncio.to_thread(Spool, self._folder)
        try:
            await self._acknowledge_leased()
            self._sender = Sender(self._url, self._spool, self._terms)
        except BaseException:
            self._spool.close()
            raise
        self._work(self._sender.run())
        if self._gateway is not None:
            self._work(self._forward(self._gateway))
        return self

    def _work(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        task.add_done_callback(_tell)
        self._working.append(task)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Sends nothing more. What waits is on disk."""
        self._sender.stop()
        await asyncio.wait(self._working[:1], timeout=STOP_SECONDS)
        for task in self._working:
            task.cancel()
        ended = await asyncio.gather(*self._working, *self._keeping, return_exceptions=True)
        self._spool.close()
        failed = [one for one in ended if isinstance(one, Exception)]
        if failed and error is None:
            raise failed[0]

    async def send(self, group: scored.Group | Sequence[scored.Group], *, any_length: bool = False) -> None:
        """A `ScoredData`, or several that are one step; it is durable when this returns. `any_length`: also where the
        trainer says that it is too long for it."""
        await self._keep(Entry(data=scored.body(group), any_length=any_length))

    async def handle_send_to_api(
        self,
        scored_data: scored.Group | Sequence[scored.Group | None] | None,
        item: Any = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        """In place of `BaseEnv`'s: it leaves out what that leaves out, and says so."""
        several = isinstance(scored_data, Sequence)
        given = scored_data if isinstance(scored_data, Sequence) else [scored_data]
        groups = [group for group in given if group is not None and self._wanted(group)]
        if groups and do_send_to_api:
            await self.send(groups if several else groups[0], any_length=not abort_on_any_max_length_exceeded)

    async def drained(self) -> None:
        """Until the API has, or has refused, what was handed in and every complete group of the gateway."""
        while self._unsent():
            moved = self._sender.moved
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(moved.wait(), LOOK_SECONDS)
            for task in self._working:
                if task.done():
                    task.result()

    def _unsent(self) -> bool:
        return bool(self._keeping or self._spool.waiting or (self._gateway and self._gateway.open_groups))

    # -- from the gateway ----------------------------------------------------------------------------------

    async def _acknowledge_leased(self) -> None:
        """What an earlier process had on disk, and no time to say so. A lease that is unknown by now is no reason to
        lose the group."""
        for number, lease in self._spool.leases().items():
            if self._gateway is not None:
                await self._acknowledged(self._gateway, lease)
            self._spool.release(number)

    async def _forward(self, gateway: Gateway) -> None:
        async for group in gateway.groups(max_staleness=self._max_staleness, seconds=LEASE_SECONDS):
            await self._keep(self._entry(group))

    def _entry(self, group: Group) -> Entry:
        try:
            samples = self._chosen(group)
            return Entry(data=scored.body(row(samples)), lease=group.leased.lease)
        except (CallerError, ConfigError) as error:
            log.error("group %s is not sent, and kept in %s: %s", group.name, self._folder / REFUSED, error.message)
            told = {"group": group.name, "samples": [sample.to_json() for sample in group.samples]}
            return Refused(
                data=msgspec.Raw(msgspec.json.encode(told)),
                lease=group.leased.lease,
                status=None,
                reason=error.message,
                at=time.time(),
            )

    def _chosen(self, group: Group) -> list[Sample]:
        if self._branches == "main":
            samples = [sample for sample in group.samples if sample.main]
        else:
            samples = list(single(group.samples, "Atropos"))
        size = group.leased.group_size
        if len(samples) < size:
            raise CallerError(f"it has {len(samples)} sequences of {size}: Atropos would wait for others to make it up")
        return samples

    # -- to disk -------------------------------------------------------------------------------------------

    async def _keep(self, entry: Entry) -> None:
        """Once begun it is done to its end, whoever waits for it."""
        keeping = asyncio.ensure_future(self._kept(entry))
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)
        await asyncio.shield(keeping)

    async def _kept(self, entry: Entry) -> None:
        number = await asyncio.to_thread(self._spool.put, entry)
        if entry.lease is not None and self._gateway is not None:
            await self._acknowledged(self._gateway, entry.lease)
        if not isinstance(entry, Refused):
            self._spool.release(number)
            self._sender.wake()

    async def _acknowledged(self, gateway: Gateway, lease: str) -> None:
        (in_time,) = await gateway.acknowledge([lease])
        if not in_time:
            log.warning("a group is sent whose lease %s had run out: another trainer may have it too", lease)

    def _wanted(self, group: scored.Group) -> bool:
        """As `BaseEnv.handle_send_to_api` has it."""
        size = (group.get("group_overrides") or {}).get("group_size", self._terms.group_size)
        if len(group.get("tokens", ())) != size:
            log.warning("a group of %d sequences is left out: it should have %s", len(group.get("tokens", ())), size)
            return False
        if self._differing_only and len(set(group["scores"])) == 1:
            log.warning("a group is left out: its scores are all the same")
            return False
        return True


def _tell(task: asyncio.Task[None]) -> None:
    """At once: who waits for it may come to hear of it much later."""
    if not task.cancelled() and task.exception() is not None:
        log.error("no more groups are sent: %s", task.exception())
