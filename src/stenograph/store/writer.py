"""One thread writes, and it commits in groups: while one fsync is under way, the next transaction gathers in the queue.

So the number of fsyncs follows the disk's speed, not the number of callers, and none of them waits for more than two.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from concurrent.futures import Future
from typing import NamedTuple

from stenograph.errors import StoreError
from stenograph.store.faults import is_busy, told
from stenograph.store.tables import Statement, write


class Job(NamedTuple):
    statements: list[Statement]
    """What one `commit` asked for: durable together, or not at all."""
    done: Future[None]


class Writer:
    def __init__(self, connection: sqlite3.Connection) -> None:
        """`connection` is the writer's own from here on, and closed with it."""
        self.transactions = 0
        """How many were committed."""
        self._connection = connection
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        # A daemon: what is still waiting when the process ends was never answered, and may be lost.
        self._thread = threading.Thread(target=self._run, name="stenograph-store", daemon=True)
        self._thread.start()

    def submit(self, statements: list[Statement]) -> Future[None]:
        """Cancelling the future takes the job back, unless the writer has already begun with it."""
        job = Job(statements, Future())
        with self._gate:
            if self._closed:
                raise StoreError("the store is closed")
            self._queue.put(job)
        return job.done

    def close(self) -> None:
        """Blocks until everything that was submitted is settled, and the WAL is back in the database's own file."""
        with self._gate:
            already, self._closed = self._closed, True
            if not already:
                self._queue.put(None)
        self._thread.join()
        if not already:
            self._connection.execute("PRAGMA wal_checkpoint")
            self._connection.close()

    def _run(self) -> None:
        last = False
        while not last:
            waiting = self._gather()
            last = waiting[-1] is None
            self._settle([job for job in waiting if job is not None and job.done.set_running_or_notify_cancel()])

    def _gather(self) -> list[Job | None]:
        """Waits for one, then takes whatever else is there."""
        waiting = [self._queue.get()]
        while not self._queue.empty():
            waiting.append(self._queue.get())
        return waiting

    def _settle(self, jobs: list[Job]) -> None:
        """Every job's waiter is told, whatever happens: one that is not would wait for ever, and with it its agent."""
        try:
            write(self._connection, (statement for job in jobs for statement in job.statements))
        except Exception as error:
            self._settle_apart(jobs, error)
        else:
            self.transactions += 1
            for job in jobs:
                job.done.set_result(None)

    def _settle_apart(self, jobs: list[Job], error: Exception) -> None:
        """One job's fault is not its neighbours': each gets a transaction of its own, if there is one to be had."""
        if len(jobs) == 1 or is_busy(error):
            for job in jobs:
                job.done.set_exception(told(error))
        else:
            for job in jobs:
                self._settle([job])
