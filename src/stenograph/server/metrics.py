"""What `GET /metrics` tells, in Prometheus' own text. Forks, notes and attempts are counted: nothing is silent."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from stenograph.core import Call, Turn
from stenograph.wire.info import EngineView

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
LAGS = (0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.3, 1, 3)


class Metrics:
    """One gateway's own: several may live in one process."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.turns = Counter("stenograph_turns", "Turns committed", registry=registry)
        self.sampled = Counter("stenograph_sampled_tokens", "Tokens sampled and recorded", registry=registry)
        self.context = Counter("stenograph_context_tokens", "New context tokens recorded", registry=registry)
        self.forks = Counter("stenograph_forks", "Turns that forked", ["reason"], registry=registry)
        self.notes = Counter("stenograph_notes", "Tolerances used", ["kind"], registry=registry)
        self.attempts = Counter("stenograph_attempts", "Calls that left no turn", ["reason"], registry=registry)
        self.errors = Counter("stenograph_errors", "Calls answered with an error", ["status"], registry=registry)
        self.disconnects = Counter("stenograph_disconnects", "Callers that went away", registry=registry)
        self.without_session = Counter("stenograph_calls_without_session", "Calls that named none", registry=registry)
        self.batches = Counter("stenograph_batches", "Complete groups", ["event"], registry=registry)
        self.stale_sessions = Counter("stenograph_stale_sessions", "Sessions too old to be given", registry=registry)
        self.batches_waiting = Gauge("stenograph_batches_waiting", "Complete groups nobody holds", registry=registry)
        self.in_flight = Gauge("stenograph_calls_in_flight", "Calls under way", registry=registry)
        self.open_sessions = Gauge("stenograph_open_sessions", "Sessions that take calls", registry=registry)
        self.engine_up = Gauge("stenograph_engine_up", "1 where an engine takes calls", ["engine"], registry=registry)
        self.engine_in_flight = Gauge(
            "stenograph_engine_in_flight", "Choices that an engine samples", ["engine"], registry=registry
        )
        self.engine_waiting = Gauge(
            "stenograph_engine_waiting", "Calls that wait for an engine", ["engine"], registry=registry
        )
        self.first_token = Histogram(
            "stenograph_first_token_seconds", "Arrival to first token", buckets=SECONDS, registry=registry
        )
        self.duration = Histogram("stenograph_call_seconds", "Arrival to record", buckets=SECONDS, registry=registry)
        self.lag = Histogram("stenograph_loop_lag_seconds", "How late the loop is", buckets=LAGS, registry=registry)

    def committed(self, call: Call, turns: Sequence[Turn]) -> None:
        self.turns.inc(len(turns))
        self.sampled.inc(sum(turn.sampled_tokens for turn in turns))
        self.context.inc(len(call.context))
        if call.fork is not None:
            self.forks.labels(call.fork.reason.value).inc()
        for note in (*call.notes, *(note for turn in turns for note in turn.notes)):
            self.notes.labels(note.kind.value).inc()
        if call.first_token_at is not None:
            self.first_token.observe(call.first_token_at - call.created_at)
        self.duration.observe(call.finished_at - call.created_at)

    def engines(self, views: Sequence[EngineView]) -> None:
        """As they are at this moment."""
        for view in views:
            self.engine_up.labels(view.name).set(view.up and not view.paused)
            self.engine_in_flight.labels(view.name).set(view.in_flight)
            self.engine_waiting.labels(view.name).set(view.waiting)

    def text(self) -> bytes:
        return generate_latest(self._registry)
