"""Where the figures were taken: the machine, without a name or a path, and the versions that make a difference."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

PACKAGES = ("stenograph", "uvicorn", "httptools", "uvloop", "aiohttp", "msgspec", "starlette", "tokenizers", "numpy")
FSYNCS = 50


def described() -> list[str]:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return [
        f"{os.cpu_count()} cores, {_model()}, {_memory()} of memory, {platform.system()}",
        f"one fsync of a page in the folder that the store is kept in: {_fsync_milliseconds():.2f} ms",
        f"{platform.python_implementation()} {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {versions}",
    ]


def _model() -> str:
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _fsync_milliseconds() -> float:
    """What `synchronous=FULL` waits for. Next to nothing where the folder is in memory, or the disk's cache lies."""
    with tempfile.TemporaryFile() as file:
        return statistics.median(_timed_write(file.fileno()) for _ in range(FSYNCS)) * 1000


def _timed_write(file: int) -> float:
    started = time.perf_counter()
    os.write(file, bytes(4096))
    os.fsync(file)
    return time.perf_counter() - started
