"""The sessions of a store on disk, for commands that read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stenograph.errors import ConfigError
from stenograph.store.store import StoredSession
from stenograph.store.tables import Reads


def stored_sessions(reader: Reads, wanted: Sequence[str] | None) -> Iterator[StoredSession]:
    """Oldest first; a wanted one that is not there is an error, told before anything is written."""
    known = [facts.id for facts in reader.facts()]
    missing = sorted(set(wanted or ()) - set(known))
    if missing:
        raise ConfigError(f"--session {missing[0]}: there is no such session in this store")
    return _loaded(reader, [id for id in known if wanted is None or id in wanted])


def _loaded(reader: Reads, ids: list[str]) -> Iterator[StoredSession]:
    for id in ids:
        stored = reader.load(id)
        if stored is not None:
            yield stored
