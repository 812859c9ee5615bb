"""`stenograph score`: a teacher scores a store's samples, and what it says is kept beside them."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from stenograph.commands.stored import stored_sessions
from stenograph.config import Settings, TeacherSpec, from_file, settings
from stenograph.errors import ConfigError
from stenograph.export.sample import samples
from stenograph.faculty import Student, hired
from stenograph.furnish import Loaded, model_files, renderer_of
from stenograph.live import revived
from stenograph.store.sqlite import FILE, SqliteStore
from stenograph.store.store import StoredSession
from stenograph.teacher.opening import Reading
from stenograph.teacher.teachers import Tally, Teachers

SESSIONS = 32
"""At a time: enough to find what they share, few enough for any memory."""
SHOWN = 20
"""Failures that are told one by one."""
BAR = 30


def run(options: dict[str, Any]) -> int:
    chosen = _settings(options)
    specs = [_overridden(spec, options) for spec in chosen.teachers()]
    if not specs:
        raise ConfigError("score needs a teacher: --teacher NAME=KIND=WHERE, or a --config with a [[teacher]]")
    folder = Path(options["store"])
    if not (folder / FILE).is_file():
        raise ConfigError(f"store {folder}: no store here: there is no {FILE}")
    return asyncio.run(_scored(folder, chosen, specs, options.get("session")))


def _settings(options: dict[str, Any]) -> Settings:
    values = from_file(Path(options["config"])) if "config" in options else {}
    return settings(values | {key: options[key] for key in ("teacher", "tokenizer") if key in options})


def _overridden(spec: TeacherSpec, options: dict[str, Any]) -> TeacherSpec:
    """A flag wins over the file, and counts for each teacher."""
    changes = {key: options[key] for key in ("top_k", "positions") if key in options}
    if changes.get("top_k", 0) < 0:
        raise ConfigError(f"--top-k {changes['top_k']}: expected 0 or more")
    return msgspec.structs.replace(spec, **changes)


async def _scored(folder: Path, chosen: Settings, specs: Sequence[TeacherSpec], wanted: Sequence[str] | None) -> int:
    store = SqliteStore(folder)
    try:
        recorded = _Recorded(stored_sessions(store, wanted))
        teachers = await hired(specs, lambda loaded: _student(chosen, loaded, recorded.tokenizers), store)
        try:
            failures = [await _by(teachers, spec.name, store, wanted, recorded.samples) for spec in specs]
        finally:
            await teachers.close()
    finally:
        await store.close()
    return 1 if any(failures) else 0


class _Recorded:
    """What there is to score."""

    def __init__(self, sessions: Iterator[StoredSession]) -> None:
        self.samples = 0
        self.tokenizers: set[str] = set()
        for one in sessions:
            self.samples += len(_readings(one))
            self.tokenizers |= {call.turns[0].call.tokenizer_hash for call in one.calls}
        if not self.samples:
            raise ConfigError("there is nothing to score: no session of this store has a turn")


def _readings(stored: StoredSession) -> list[Reading]:
    session = revived(stored)
    turns = list(session.tree.turns.values())
    return [Reading(one, session.tree, stored.facts.created_at) for one in samples(stored.facts, turns)]


def _student(chosen: Settings, teacher: Loaded, recorded: set[str]) -> Student:
    """The record says by its hash which tokenizer it was made with; where that is the teacher's own, nothing else is
    needed."""
    files, tokenizer = teacher
    if chosen.tokenizer is not None:
        files, tokenizer = model_files(chosen.tokenizer)
        if recorded != {tokenizer.hash}:  # a trainer's own object has no file, so it cannot be refused
            print(
                f"stenograph: --tokenizer {chosen.tokenizer}: the samples were recorded with another file, or with a "
                "trainer's own object: that it says the same is taken on trust",
                file=sys.stderr,
            )
    elif recorded != {tokenizer.hash}:
        raise ConfigError(
            f"the samples were recorded with another tokenizer file than {files.name} has: give --tokenizer, the "
            "student's, so that the two can be compared"
        )
    return Student(tokenizer, lambda: renderer_of(chosen, files, tokenizer))


async def _by(teachers: Teachers, name: str, store: SqliteStore, wanted: Sequence[str] | None, total: int) -> bool:
    """Whether any sample could not be scored."""
    bar, tallies = _Bar(name, total), list[Tally]()
    left = stored_sessions(store, wanted)
    while chunk := [reading for one in itertools.islice(left, SESSIONS) for reading in _readings(one)]:
        done = bar.done
        tallies.append(await teachers.score(name, chunk, bar.step))
        bar.reach(done + len(chunk))
    bar.close()
    _say(teachers, name, tallies)
    return any(tally.failed for tally in tallies)


def _say(teachers: Teachers, name: str, tallies: Sequence[Tally]) -> None:
    failed = [failure for tally in tallies for failure in tally.failed.items()]
    for id, error in failed[:SHOWN]:
        print(f"stenograph: {id}: {error}", file=sys.stderr)
    if len(failed) > SHOWN:
        print(f"stenograph: and {len(failed) - SHOWN} more", file=sys.stderr)
    counts = {
        "scored": sum(tally.scored for tally in tallies),
        "known before": sum(tally.known for tally in tallies),
        "failed": len(failed),
        "left out": sum(tally.skipped for tally in tallies),
    }
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count or what == "scored")
    print(f"{name}: {told}; {teachers.usage(name)}")


class _Bar:
    """On a terminal only."""

    def __init__(self, name: str, total: int) -> None:
        self.done = 0
        self._name = name
        self._total = total
        self._shown = sys.stderr.isatty()
        self._draw()

    def step(self) -> None:
        self.reach(self.done + 1)

    def reach(self, done: int) -> None:
        self.done = min(done, self._total)
        self._draw()

    def close(self) -> None:
        if self._shown:
            print(file=sys.stderr)

    def _draw(self) -> None:
        if self._shown:
            full = BAR * self.done // self._total
            bar = "#" * full + "." * (BAR - full)
            print(
                f"\r\x1b[K{self._name} [{bar}] {self.done}/{self._total} samples", end="", file=sys.stderr, flush=True
            )
