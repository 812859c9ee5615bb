"""A gateway in this process: the application that `serve` serves, and the Python API over the very same one."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from starlette.types import ASGIApp

from stenograph.assets.trainers import brought
from stenograph.config import Settings, settings
from stenograph.core import JSON, Sample, State, Turn
from stenograph.engine.engine import Engine
from stenograph.errors import NotFound, StenographError
from stenograph.export.sample import Shared, samples
from stenograph.faculty import Student, hired
from stenograph.furnish import IN_MEMORY, furnished
from stenograph.house import House
from stenograph.live import LiveSession
from stenograph.render.renderer import Renderer
from stenograph.server import app, batch_calls
from stenograph.server.deliveries import Deliveries
from stenograph.server.desk import Desk
from stenograph.server.lag import watch
from stenograph.server.metrics import Metrics
from stenograph.server.registry import Registry, new_key
from stenograph.server.session_calls import opened
from stenograph.session.lifecycle import rewarded
from stenograph.sidecar import joined
from stenograph.store.store import StoredSession, TurnsCommitted
from stenograph.wire import batches, body, sessions
from stenograph.wire.batches import LeaseBatches, LeasedBatch

if TYPE_CHECKING:
    import anthropic
    import openai

HERE = "http://stenograph"
"""A host for base URLs that never leave the process."""
SWEEP_SECONDS = 1.0
"""How often idle sessions are looked for."""


class Gateway:
    """`async with Gateway(engine="vllm=http://127.0.0.1:8000") as gateway: …`"""

    def __init__(self, *, engine: str | Sequence[str] | Engine, log: Path | None = None, **options: Any) -> None:
        """`engine`: `KIND=WHERE`, as on the command line, or an object of one's own that meets `Engine`. `options`: the
        other fields of `config.Settings` (`tokenizer`, `store` …); without a `store` nothing is written to disk. A
        `tokenizer` may be an object, too: transformers' own, or any that encodes and decodes. `log`: where an embedded
        engine writes what it was sent."""
        given = {key: os.fspath(value) if isinstance(value, os.PathLike) else value for key, value in options.items()}
        by_name = isinstance(given.get("tokenizer"), str | None)
        self._brought = None if by_name else brought(given.pop("tokenizer"))
        named = {key.replace("_", "-"): value for key, value in given.items() if value is not None}
        listed = [engine] if isinstance(engine, str) else list(engine) if isinstance(engine, Sequence) else []
        self._own_engine = None if isinstance(engine, str | Sequence) else engine
        self.settings: Settings = settings({"store": IN_MEMORY, **named, "engine": listed})
        self.app: ASGIApp = app.build(self._at_desk)
        self._log = log
        self._desk: Desk | None = None
        self._watches: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        house = await self._furnished()
        try:
            metrics = Metrics()
            for said in house.store.weights():
                house.weights.recall(said.version, said.step)
            deliveries = Deliveries(house.store, house.now, metrics)
            registry = Registry(
                house.store, house.now, self.settings.grace, deliveries, self.settings.max_open_sessions
            )
            student = Student(house.renderer.tokenizer, lambda: house.renderer)
            teachers = await hired(self.settings.teachers(), lambda _: student, house.store)
        except BaseException:
            await house.engines.close()
            await house.store.close()
            raise
        self._desk = Desk(self.settings, house, registry, deliveries, metrics, teachers)
        self._watches = [asyncio.ensure_future(watching) for watching in (_sweep(registry), watch(metrics.lag))]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends what is under way, writes what is unwritten, lets the engine go."""
        desk, self._desk = self._at_desk(), None
        for watching in self._watches:
            watching.cancel()
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(desk.house.store.close)
            stack.push_async_callback(desk.house.engines.close)
            stack.push_async_callback(desk.teachers.close)
            stack.push_async_callback(desk.deliveries.close)
            stack.push_async_callback(desk.registry.close)

    async def _furnished(self) -> House:
        return await furnished(self.settings, self._log, self._own_engine, self._brought)

    @property
    def model(self) -> str:
        return self._at_desk().models[0]

    @property
    def renderer(self) -> Renderer:
        """How its model is written and read: tokenizer, template, and what was learned of both."""
        return self._at_desk().house.renderer

    @property
    def engines(self) -> tuple[Engine, ...]:
        """Where several sample, all serve one model."""
        return tuple(member.engine for member in self._at_desk().house.engines.members)

    def session(self, id: str | None = None, **fields: Any) -> Session:
        """Opens a session; `fields` are those of `POST /sessions`."""
        desk = self._at_desk()
        wanted = sessions.create(body.written({"id": id, **fields}))
        key = new_key()
        live, _ = desk.registry.open(opened(desk, wanted, key))
        return Session(self, desk, live, key)

    async def groups(
        self, *, max_staleness: int | None = None, seconds: float = batches.MINUTES, shared: Shared = "once"
    ) -> AsyncIterator[Group]:
        """Complete groups, the first to be complete first, each as soon as it is; ends with the gateway. The same as
        `POST /batches/lease`: one that is not acknowledged is given again, `seconds` after it was given."""
        desk = self._at_desk()
        wanted = body.convert({"seconds": seconds, "max_staleness": max_staleness, "shared": shared}, LeaseBatches)
        unfit = batch_calls.too_old(desk, wanted.max_staleness)
        while (batch := await desk.deliveries.next(wanted.seconds, unfit)) is not None:
            yield Group(desk, batch_calls.shown(desk, batch, wanted.shared))

    async def acknowledge(self, leases: Sequence[str]) -> tuple[bool, ...]:
        """Of groups that were given earlier, also to a process that is gone; of each, what `Group.ack` says."""
        return await self._at_desk().deliveries.acknowledge(leases)

    @property
    def open_groups(self) -> int:
        """Complete groups that nobody has acknowledged."""
        return self._at_desk().deliveries.open

    def _at_desk(self) -> Desk:
        if self._desk is None:
            raise StenographError("the gateway is not running: use `async with Gateway(…)`")
        return self._desk


class Session:
    """One rollout. Its clients are the vendors' own, served in this process through the whole HTTP path."""

    def __init__(self, gateway: Gateway, desk: Desk, live: LiveSession, key: str) -> None:
        self._gateway = gateway
        self._desk = desk
        self._live = live
        self.id = live.facts.id
        self.api_key = key

    def openai(self, **options: Any) -> openai.AsyncOpenAI:
        """A real `openai.AsyncOpenAI`; `options` are its own."""
        from stenograph.clients import openai_client

        return openai_client(self._gateway.app, f"{HERE}/s/{self.id}/v1", self.api_key, options)

    def anthropic(self, **options: Any) -> anthropic.AsyncAnthropic:
        """A real `anthropic.AsyncAnthropic`; `options` are its own."""
        from stenograph.clients import anthropic_client

        return anthropic_client(self._gateway.app, f"{HERE}/s/{self.id}", self.api_key, options)

    def reward(
        self,
        reward: float | None,
        *,
        turn_id: str | None = None,
        scores: dict[str, float] | None = None,
        metadata: dict[str, JSON] | None = None,
    ) -> asyncio.Task[None]:
        """Counts at once; await the answer to know it durable. True is 1, so `reward(answer == gold)` may be said."""
        if isinstance(reward, bool | np.bool_):
            reward = float(reward)
        given = {"reward": reward, "turn_id": turn_id, "scores": scores or {}, "metadata": metadata or {}}
        wanted = sessions.reward(body.written(given))
        facts = rewarded(
            self._live.facts,
            wanted.reward,
            turn_id=wanted.turn_id,
            scores=wanted.scores,
            metadata=wanted.metadata,
            known_turns=self._live.tree.turns,
        )
        return self._desk.registry.change(self._live, facts)

    def finish(self, status: str = "completed", error: str | None = None) -> asyncio.Task[None]:
        """Takes no more calls. Counts at once; await the answer to know it durable."""
        wanted = sessions.finish(body.written({"status": status, "error": error}))
        return self._desk.registry.end(self._live, State(wanted.status), wanted.error)

    async def delete(self) -> None:
        """With all that is kept of it; what is under way ends first."""
        await self._desk.registry.delete(self._live)

    @property
    def turns(self) -> Mapping[str, Turn]:
        """By id, in the order in which they were committed."""
        return MappingProxyType(self._live.tree.turns)

    def samples(self, shared: Shared = "once") -> list[Sample]:
        """As the session stands, one a branch; `sample.to_json()` is what HTTP answers."""
        return samples(self._live.facts, list(self.turns.values()), shared)

    async def taught(self, teacher: str, shared: Shared = "once") -> list[Sample]:
        """The same with what a teacher says of them: one of the gateway's, which is asked for what is not on record, or
        one whose word the store has."""
        return await self._desk.samples(self._live, shared, teacher)

    def sidecars(self, sample: Sample) -> dict[str, dict[str, NDArray[Any]]]:
        """What the engine told beside the tokens, by kind, joined along the path (see `stenograph.sidecar`)."""
        return joined(sample, self._stored)

    def _stored(self, name: str) -> bytes:
        body = self._desk.house.store.blob(name)
        if body is None:
            raise NotFound(f"the store has no sidecar {name}")
        return body

    def record(self) -> StoredSession:
        """All that is kept of it, as it stands in memory: what the store, read again, has to equal (law 3)."""
        tree = self._live.tree
        calls = (TurnsCommitted(tuple(tree.choices(call))) for call in tree.calls.values())
        return StoredSession(self._live.facts, tuple(calls))


class Group:
    """A complete group, given to a trainer until it acknowledges it or the lease runs out."""

    def __init__(self, desk: Desk, leased: LeasedBatch) -> None:
        self._desk = desk
        self.leased = leased

    @property
    def name(self) -> str:
        return self.leased.group

    @property
    def samples(self) -> list[Sample]:
        """Of all its sessions."""
        return [sample for session in self.leased.sessions for sample in session.samples]

    async def ack(self) -> bool:
        """Done with it: nobody is given it again. False: the lease had run out, and another trainer has it by now."""
        (in_time,) = await self._desk.deliveries.acknowledge([self.leased.lease])
        return in_time


async def _sweep(registry: Registry) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        registry.expire()
