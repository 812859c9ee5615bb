"""What a demo left on disk, read as strangers would read it: the store, the samples, the engine's log."""

from __future__ import annotations

import msgspec

from stenograph.audit.case import Evidence
from stenograph.demo.folder import Folder
from stenograph.demo.rollouts import Played
from stenograph.engine.log import LoggedCall
from stenograph.export.formats import jsonl
from stenograph.export.sample import samples
from stenograph.store.sqlite import SqliteReader
from stenograph.store.store import StoredSession


def gathered(folder: Folder, played: Played) -> Evidence:
    """Writes the samples first, as `stenograph export` does, and then checks what stands in the file."""
    with SqliteReader(folder.store) as disk:
        loaded = [disk.load(facts.id) for facts in disk.facts()]
    recorded = tuple(session for session in loaded if session is not None)
    _export(folder, recorded)
    log = folder.log.read_bytes().splitlines() if folder.log.exists() else []
    return Evidence(
        recorded=recorded,
        samples=tuple(jsonl.decode(folder.samples.read_bytes().splitlines())),
        log=tuple(msgspec.json.decode(line, type=LoggedCall) for line in log),
        remembered=played.remembered,
        answered=played.answered,
    )


def _export(folder: Folder, recorded: tuple[StoredSession, ...]) -> None:
    with folder.samples.open("wb") as file:
        for session in recorded:
            turns = [turn for committed in session.calls for turn in committed.turns]
            file.writelines(jsonl.encode(samples(session.facts, turns)))
