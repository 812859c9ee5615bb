"""The boundary: what SQLite, the disk and the codecs raise becomes one clear sentence, here and nowhere else."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from stenograph.errors import ConfigError, StenographError, StoreError

_SENTENCES = {
    "SQLITE_BUSY": "another program holds its write lock",
    "SQLITE_CANTOPEN": "its file cannot be opened, or its folder cannot be written",
    "SQLITE_CORRUPT": "its file is damaged",
    "SQLITE_FULL": "its disk is full",
    "SQLITE_IOERR": "its disk reports an I/O error",
    "SQLITE_NOTADB": "its file is damaged, or is not a database",
    "SQLITE_READONLY": "its file or its folder is read-only",
    "SQLITE_TOOBIG": "a record is larger than SQLite can hold",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "the call's session, or its parent turn, is not in it",
    "SQLITE_CONSTRAINT_PRIMARYKEY": "what was committed is never written again",
    "SQLITE_CONSTRAINT_UNIQUE": "what was committed is never written again",
    "FileExistsError": "it is a file, not a folder",
    "NotADirectoryError": "it is inside a file, not a folder",
    "PermissionError": "it cannot be written",
}
"""By SQLite's own name of the error, the extended one or, failing that, the primary one; else by its class."""

LOWER_ERRORS = (sqlite3.Error, msgspec.MsgspecError, OSError, ValueError, TypeError, OverflowError, RecursionError)
"""What may come up from below: SQLite and the disk, JSON and msgpack, numpy, and values that SQLite cannot bind."""


def sentence(error: Exception) -> str:
    name: str = getattr(error, "sqlite_errorname", type(error).__name__)
    primary = "_".join(name.split("_")[:2])
    known = _SENTENCES.get(name) or _SENTENCES.get(primary)
    return f"{known} ({error})" if known else f"{error} ({name})"


def is_busy(error: Exception) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")


def told(error: Exception) -> StoreError:
    """A new `StoreError` for each waiter: raised in several tasks, one exception would gather all their tracebacks."""
    fault = StoreError(f"the store: {sentence(error)}")
    fault.__cause__ = error
    return fault


@contextlib.contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except LOWER_ERRORS as error:
        raise told(error) from error


@contextlib.contextmanager
def opening(path: Path) -> Iterator[None]:
    """A store that cannot be opened is the operator's to mend: one line, with the path."""
    try:
        yield
    except StenographError as error:
        raise ConfigError(f"store {path}: {error.message}") from error
    except LOWER_ERRORS as error:
        raise ConfigError(f"store {path}: {sentence(error)}") from error
