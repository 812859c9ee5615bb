"""Groups on their way to the trajectory API, on disk: a file a group, so that a person can look at what waits.

    put ─▶ leased/ ─▶ waiting/ ─▶ sent/ ─▶ gone: the trainer has it
                        │  ▲        │
                        │  └────────┘ the API died with it
                        └─▶ refused/: with the reason beside the group; moved back by hand, it is sent at the next start

`leased/` holds what the gateway has not been told is here; what was handed in by itself begins in `waiting/`. A file
has its name when all of it is on disk. The name is its place in the order, and none is given twice.
"""

from __future__ import annotations

import os
import threading
from bisect import insort
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from stenograph.core import JSON, Value
from stenograph.errors import ConfigError, StoreError
from stenograph.store.lock import FolderLock

LEASED, WAITING, SENT, REFUSED = FOLDERS = ("leased", "waiting", "sent", "refused")
NEW = ".new"
"""Of a file that is being written. One that is found at the start is from a write that nobody was told of."""


class Entry(Value, kw_only=True):
    """A file of the spool."""

    data: msgspec.Raw
    """The body, as it will be sent, but for `env_id`: a group, or a list of them."""
    lease: str | None = None
    """Of the gateway's batch that it is, to be acknowledged. None: it was handed in by itself."""
    any_length: bool = False
    """Also where it is longer than the trainer wants."""


class Refused(Entry, kw_only=True):
    status: int | None
    """The API's. None: it was never sent."""
    reason: str
    at: float
    """Unix seconds."""


class Life(Value, kw_only=True):
    """How the API that has `sent/` knows us; see `sender.py`."""

    alias: str
    body: JSON
    """What was registered."""
    env_id: int | None = None
    """None: it does not count on us."""
    asked: bool = False
    """We were about to register: whether that was done, nobody has read."""


class Spool:
    def __init__(self, folder: Path) -> None:
        """Takes the folder's lock: two senders would send everything twice."""
        with _told(folder):
            for name in FOLDERS:
                (folder / name).mkdir(parents=True, exist_ok=True)
            self._folder = folder
            self._lock = FolderLock(folder)
            for unfinished in folder.rglob(f"*{NEW}"):
                unfinished.unlink()
        self.waiting = sorted(self._numbers(WAITING))
        """In the order in which they were put; likewise what was sent."""
        self.sent = sorted(self._numbers(SENT))
        self._putting = threading.Lock()
        self._next = max((number for name in FOLDERS for number in self._numbers(name)), default=0) + 1

    def close(self) -> None:
        self._lock.release()

    def put(self, entry: Entry) -> int:
        """Durable when it returns; from any thread. It does not wait to be sent before `release`."""
        with self._putting:
            number, self._next = self._next, self._next + 1
            folder = REFUSED if isinstance(entry, Refused) else WAITING if entry.lease is None else LEASED
            self._write(self._path(folder, number), entry)
        return number

    def leases(self) -> dict[int, str]:
        """Of what the gateway has not been told is here."""
        return {number: self.read(number, LEASED).lease or "" for number in sorted(self._numbers(LEASED))}

    def release(self, number: int) -> None:
        """It may be sent."""
        leased = self._path(LEASED, number)
        with _told(leased):
            if leased.exists():
                leased.rename(self._path(WAITING, number))
        insort(self.waiting, number)

    def read(self, number: int, folder: str = WAITING) -> Entry:
        path = self._path(folder, number)
        with _told(path):
            body = path.read_bytes()
        try:
            return msgspec.json.decode(body, type=Entry)
        except msgspec.DecodeError as error:
            raise StoreError(f"{path} is no group of this spool: {error}") from error

    def accept(self, number: int) -> None:
        """The API has it. A crash before this is on disk sends it once more."""
        with _told(self._folder):
            self._path(WAITING, number).rename(self._path(SENT, number))
        self.waiting.remove(number)
        insort(self.sent, number)

    def refuse(self, number: int, status: int | None, reason: str, at: float) -> Path:
        """Kept, and out of the way of the others. The path is where."""
        entry = self.read(number)
        told = {name: getattr(entry, name) for name in Entry.__struct_fields__}
        path = self._path(REFUSED, number)
        self._write(path, Refused(**told, status=status, reason=reason, at=at))
        with _told(self._folder):
            self._path(WAITING, number).unlink()
        self.waiting.remove(number)
        return path

    def forget(self, number: int) -> None:
        """The trainer has it."""
        with _told(self._folder):
            self._path(SENT, number).unlink()
        self.sent.remove(number)

    def take_back(self) -> int:
        """The API died: what it had is sent again. How many those are."""
        numbers = list(self.sent)
        for number in numbers:
            with _told(self._folder):
                self._path(SENT, number).rename(self._path(WAITING, number))
            self.sent.remove(number)
            insort(self.waiting, number)
        return len(numbers)

    def life(self) -> Life | None:
        path = self._folder / "registration.json"
        with _told(path):
            return msgspec.json.decode(path.read_bytes(), type=Life) if path.exists() else None

    def set_life(self, life: Life) -> None:
        self._write(self._folder / "registration.json", life)

    def _numbers(self, name: str) -> Iterator[int]:
        return (int(path.stem) for path in (self._folder / name).glob("*.json") if path.stem.isdecimal())

    def _path(self, name: str, number: int) -> Path:
        return self._folder / name / f"{number:012d}.json"

    def _write(self, path: Path, value: Any) -> None:
        new = path.with_suffix(NEW)
        with _told(path):
            with new.open("wb") as file:
                file.write(msgspec.json.encode(value))
                file.flush()
                os.fsync(file.fileno())
            new.rename(path)
            _sync(path.parent)


def _sync(folder: Path) -> None:
    """A name is durable when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}") from error
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror}") from error
