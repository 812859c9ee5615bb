"""`stenograph export`: a store's samples to a file or a pipe, a session at a time."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from stenograph.commands.stored import stored_sessions
from stenograph.core import Sample, State, Teacher
from stenograph.errors import ConfigError
from stenograph.export.exclude import Exclusion
from stenograph.export.formats.table import FORMATS
from stenograph.export.ratios import Ratios
from stenograph.export.rollouts import single
from stenograph.export.sample import samples
from stenograph.store.sqlite import SqliteReader
from stenograph.teacher.lectures import Lectures


def run(options: dict[str, Any]) -> int:
    name, branches = options["format"], options.get("branches")
    format = FORMATS[name]
    wanted = options.get("teacher") or []
    if len(wanted) > format.teachers:
        room = "one teacher" if format.teachers else "no teacher"
        raise ConfigError(f"--format {name} has room for {room}: jsonl and parquet have it for several")
    exclusion = Exclusion(options.get("exclude") or (), main_only=branches == "main")
    ratios = Ratios(name, format.ratios)
    roles = Counter[str]()
    with SqliteReader(Path(options["store"])) as reader:
        lectures = Lectures(_teachers(reader, wanted), reader.lessons)
        found = lectures.held(_found(reader, options, exclusion))
        if not format.branches and branches is None:
            found = single(found, name)
        write(format.encode(ratios.watched(_counted(found, roles))), options["out"])
    struck = (f"left out by {flag}: {branches}" for flag, branches in exclusion.struck.items())
    untold = _untrained(name, roles) if format.ratios else ()
    for line in (*struck, *ratios.said(), *lectures.said(), *untold):
        print(f"stenograph: {line}", file=sys.stderr)
    return 0


def _found(reader: SqliteReader, options: dict[str, Any], exclusion: Exclusion) -> Iterator[Sample]:
    chosen = stored_sessions(reader, options.get("session"))
    ended = (one for one in chosen if not options["finished"] or one.facts.state is not State.OPEN)
    for one in ended:
        turns = [turn for call in one.calls for turn in call.turns]
        yield from samples(one.facts, turns, options["shared"], exclusion.keep(one.facts))


def _counted(found: Iterator[Sample], roles: Counter[str]) -> Iterator[Sample]:
    for sample in found:
        roles[sample.role] += 1
        yield sample


def _untrained(name: str, roles: Counter[str]) -> Iterator[str]:
    """A trainer is handed rows to train on, and few have a word for one that is not."""
    for role in roles.keys() - {"train"}:
        flag = f"--exclude role={role}"
        yield f"{roles[role]} of {roles.total()} samples have the role {role}; {name} would train them: {flag}"


def _teachers(reader: SqliteReader, wanted: Sequence[str]) -> list[Teacher]:
    known = {teacher.name: teacher for teacher in reader.teachers()}
    for name in wanted:
        if name not in known:
            there = f"there is {', '.join(known)}" if known else "nobody has scored it"
            raise ConfigError(f"--teacher {name}: this store has nothing of such a teacher, {there}")
    return [known[name] for name in wanted]


def write(pieces: Iterator[bytes], out: str) -> None:
    if out == "-":
        try:
            _copy(pieces, sys.stdout.buffer)
        except BrokenPipeError:  # whoever reads has enough, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    try:
        with Path(out).open("wb") as file:
            _copy(pieces, file)
    except ConfigError:
        if Path(out).is_file():  # and not a pipe, say
            Path(out).unlink()  # half of it would look like the whole
        raise
    except OSError as error:
        raise ConfigError(f"--out {out}: {error.strerror}") from error


def _copy(pieces: Iterator[bytes], file: BinaryIO) -> None:
    for piece in pieces:
        file.write(piece)
    file.flush()
