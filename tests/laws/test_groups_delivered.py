"""Groups, delivered: whatever comes in between, each complete group is acknowledged once, none is lost, order is kept.

A machine over the whole HTTP path: sessions end, trainers lease and acknowledge, or die and never do, time passes, the
gateway ends, or is killed before it wrote all down, and begins again on the same store. The model beside it knows only
what callers are told.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stenograph.core import JSON, Batch, BatchState
from stenograph.store.sqlite import SqliteStore
from stenograph.store.store import Record, Store
from tests.stage import models
from tests.stage.stage import Clocked, Shaky
from tests.stage.stores import Lasting

ENDINGS = st.sampled_from(["completed", "failed", "timeout", "cancelled"])
SECONDS = 10


class Expected:
    """A group that is complete, as its rollout workers and its trainers know it."""

    def __init__(self, sessions: list[str]) -> None:
        self.sessions = sessions
        self.lease: str | None = None
        self.until = 0.0
        self.acknowledged: list[str] = []
        """The leases by which."""

    def free(self, now: float) -> bool:
        return not self.acknowledged and self.until <= now


class Trainers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.undo = contextlib.ExitStack()
        self.slow = False
        self.time = 1000.0
        self.opened = 0
        self.forming: dict[str, list[str]] = defaultdict(list)
        self.expected: list[Expected] = []
        self.taken: list[tuple[Expected, str]] = []
        """Every lease that there ever was."""
        self.stage = self.begun()

    def store(self) -> Store:
        """As it was left."""
        raise NotImplementedError

    # -- the gateway ------------------------------------------------------------------------------------------

    def begun(self) -> Clocked:
        stage = Clocked(models.model(models.ALWAYS), self.store())
        stage.time = self.time
        stage.shaky = Slow(stage.shaky, self)
        self.slow = False
        self.loop.run_until_complete(stage.__aenter__())
        return stage

    def tell(self, path: str, body: JSON) -> JSON:
        return self.loop.run_until_complete(self.stage.tell(path, body))

    @rule()
    def restarts(self) -> None:
        self.loop.run_until_complete(self.stage.__aexit__(None, None, None))
        self.stage = self.begun()

    @rule()
    def is_about_to_be_killed(self) -> None:
        """What nobody waits for is not written any more."""
        self.slow = True

    @rule(seconds=st.sampled_from([1.0, SECONDS, 3 * SECONDS]))
    def time_passes(self, seconds: float) -> None:
        self.time += seconds
        self.stage.time = self.time

    # -- rollout workers --------------------------------------------------------------------------------------

    @initialize()
    def some_groups_are_complete(self) -> None:
        for size in (1, 2, 1):
            self.sessions_end(["completed"] * size, size, "train")

    @rule(
        statuses=st.lists(ENDINGS, min_size=1, max_size=4),
        size=st.sampled_from([1, 1, 2, 3]),
        role=st.sampled_from(["train", "train", "eval"]),
    )
    def sessions_end(self, statuses: list[str], size: int, role: str) -> None:
        for status in statuses:
            self.a_session_ends(size, status, role)

    def a_session_ends(self, size: int, status: str, role: str) -> None:
        """Each size is a group of its own."""
        id, name = f"s{self.opened}", f"g{size}"
        self.opened += 1
        self.time += 0.001
        self.stage.time = self.time
        self.tell("/sessions", {"id": id, "group": name, "group_size": size, "role": role})
        self.tell(f"/sessions/{id}/finish", {"status": status})
        self.tell(f"/sessions/{id}/finish", {"status": status})
        if role == "train":
            self.forming[name].append(id)
            if len(self.forming[name]) == size:
                self.expected.append(Expected(self.forming.pop(name)))

    # -- trainers ---------------------------------------------------------------------------------------------

    @rule(most=st.integers(1, 3), dies=st.booleans())
    def a_trainer_leases(self, most: int, dies: bool) -> None:
        taken = self.leased(most)
        if not dies:
            self.acknowledge(taken)

    @rule(most=st.integers(1, 3), faster=st.integers(0, 3))
    def a_trainer_is_slow_and_another_takes_over(self, most: int, faster: int) -> None:
        """What the other has taken by then is lost to the first; the rest is its own still."""
        slow = self.leased(most)
        self.time_passes(SECONDS)
        if faster:
            self.leased(faster)
        self.acknowledge(slow)

    def leased(self, most: int) -> list[tuple[Expected, str]]:
        found = self.tell("/batches/lease", {"batches": most, "seconds": SECONDS})["batches"]
        due = [expected for expected in self.expected if expected.free(self.time)][:most]
        assert [[session["id"] for session in batch["sessions"]] for batch in found] == [each.sessions for each in due]
        for batch, expected in zip(found, due, strict=True):
            assert all(session["state"] != "open" for session in batch["sessions"])
            assert len(batch["sessions"]) == batch["group_size"]
            expected.lease, expected.until = batch["lease"], self.time + SECONDS
        taken = [(expected, batch["lease"]) for batch, expected in zip(found, due, strict=True)]
        self.taken += taken
        return taken

    @precondition(lambda self: self.taken)
    @rule(places=st.lists(st.integers(0, 7), min_size=1, max_size=3))
    def a_trainer_acknowledges(self, places: list[int]) -> None:
        """In time, late, or once more."""
        self.acknowledge([self.taken[-1 - place % len(self.taken)] for place in places])

    def acknowledge(self, taken: list[tuple[Expected, str]]) -> None:
        answer = self.tell("/batches/ack", {"leases": [lease for _, lease in taken]})
        for expected, lease in taken:
            in_time = lease == expected.lease
            assert (lease in answer["acknowledged"], lease in answer["lost"]) == (in_time, not in_time)
            if in_time and lease not in expected.acknowledged:
                expected.acknowledged.append(lease)

    @invariant()
    def as_many_wait_as_nobody_holds(self) -> None:
        waiting = self.stage._at_desk().deliveries.waiting
        assert waiting == sum(expected.free(self.time) for expected in self.expected)

    def teardown(self) -> None:
        """In the end a trainer comes that does not die: it is given all that is left, in order."""
        try:
            self.time_passes(SECONDS)
            self.acknowledge(self.leased(len(self.expected) + 1))
            assert [len(expected.acknowledged) for expected in self.expected] == [1] * len(self.expected)
            self.restarts()
            kept = self.stage.shaky.batches()
            assert [batch.sessions for batch in kept] == [tuple(expected.sessions) for expected in self.expected]
            assert [batch.lease for batch in kept] == [expected.lease for expected in self.expected]
            assert all(batch.state is BatchState.ACKNOWLEDGED for batch in kept)
        finally:
            self.loop.run_until_complete(self.stage.__aexit__(None, None, None))
            self.undo.close()
            self.loop.close()


class Slow(Shaky):
    """A store that does not get to what nobody waits for."""

    def __init__(self, inner: Store, machine: Trainers) -> None:
        super().__init__(inner)
        self._machine = machine

    async def commit(self, records: Sequence[Record]) -> None:
        nobody_waits = all(isinstance(record, Batch) and record.state is BatchState.WAITING for record in records)
        if not (self._machine.slow and nobody_waits):
            await super().commit(records)


class InMemory(Trainers):
    def __init__(self) -> None:
        self.lasting = Lasting()
        super().__init__()

    def store(self) -> Store:
        return self.lasting


class OnDisk(Trainers):
    def store(self) -> Store:
        if not hasattr(self, "folder"):
            self.folder = Path(self.undo.enter_context(tempfile.TemporaryDirectory()))
        return SqliteStore(self.folder)


TestInMemory = InMemory.TestCase
TestInMemory.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
TestOnDisk = OnDisk.TestCase
TestOnDisk.settings = settings(max_examples=3, stateful_step_count=15, deadline=None)
