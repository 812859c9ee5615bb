"""Servers in processes of their own: started, waited for, looked at, and ended whatever happens in between."""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from stenograph.core import Value

ROOT = Path(__file__).resolve().parents[1]
"""Where the children run, so that they find `bench`."""
PATIENCE = 60.0
"""Seconds until a server must be ready, tokenizer loaded: ten times what it takes."""
LAST_WORDS = 10.0
"""Seconds that a server may take to end before it is killed."""
CLOCK_OF_A_PROCESS = 2
"""As Linux makes it of a pid (clock_getcpuclockid): to the nanosecond, where /proc counts in hundredths of a second."""
TAIL_LINES = 20


class Server(Value):
    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """Of all its threads, since it began. NaN where the system does not tell (it is not Linux)."""
        try:
            return time.clock_gettime(~self.pid << 3 | CLOCK_OF_A_PROCESS)
        except OSError:
            return float("nan")


@asynccontextmanager
async def serving(module: str, *arguments: object, errors: Path) -> AsyncIterator[Server]:
    """`python -m module`, which says `… ready URL` once it takes connections. `errors`: where its stderr goes."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with errors.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=PIPE, stderr=stderr)
    try:
        yield Server(await _ready(process, module), process.pid)
    except Exception as error:
        error.add_note(f"the last words of {module}:\n{_tail(errors)}")
        raise
    finally:
        await _end(process)


async def _ready(process: Process, module: str) -> str:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
    said, _, url = line.decode().strip().rpartition(" ")
    if not said.endswith("ready"):
        raise RuntimeError(f"{module} did not start")
    return url


def _tail(errors: Path) -> str:
    return "\n".join(errors.read_text(errors="replace").splitlines()[-TAIL_LINES:])


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), LAST_WORDS)
    except TimeoutError:
        process.kill()
        await process.wait()
