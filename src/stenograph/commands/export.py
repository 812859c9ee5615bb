"""`stenograph export`: a store's samples to a file or a pipe, a session at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from stenograph.commands.stored import stored_sessions
from stenograph.core import Sample, State
from stenograph.errors import ConfigError
from stenograph.export.exclude import Exclusion
from stenograph.export.formats import jsonl
from stenograph.export.sample import samples
from stenograph.store.sqlite import SqliteReader


def run(options: dict[str, Any]) -> int:
    exclusion = Exclusion(options.get("exclude") or ())
    with SqliteReader(Path(options["store"])) as reader:
        chosen = stored_sessions(reader, options.get("session"))
        ended = (one for one in chosen if not options["finished"] or one.facts.state is not State.OPEN)
        found = (
            sample
            for one in ended
            for sample in samples(
                one.facts,
                [turn for call in one.calls for turn in call.turns],
                options["shared"],
                exclusion.keep(one.facts),
            )
        )
        write(found, options["out"])
    for rule, branches in exclusion.struck.items():
        print(f"stenograph: left out by --exclude {rule}: {branches}", file=sys.stderr)
    return 0


def write(found: Iterable[Sample], out: str) -> None:
    if out == "-":
        try:
            _copy(jsonl.encode(found), sys.stdout.buffer)
        except BrokenPipeError:  # whoever reads has enough, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    try:
        with Path(out).open("wb") as file:
            _copy(jsonl.encode(found), file)
    except OSError as error:
        raise ConfigError(f"--out {out}: {error.strerror}") from error


def _copy(lines: Iterator[bytes], file: BinaryIO) -> None:
    for line in lines:
        file.write(line)
    file.flush()
