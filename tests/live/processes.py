"""Parts of a rollout that are processes of their own: the scripted engine with its log, a gateway, a trainer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from stenograph.engine.log import LoggedCall
from stenograph.engine.script import Script
from tests.conftest import ROOT


@asynccontextmanager
async def process(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A module of ours with its arguments. Killed at the end, if it is there still."""
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield started
    finally:
        await killed(started)


async def killed(started: asyncio.subprocess.Process) -> None:
    if started.returncode is None:
        started.kill()
    await started.wait()


async def said(started: asyncio.subprocess.Process) -> list[str]:
    assert started.stdout is not None
    return (await started.stdout.readline()).decode().split()


async def serving(started: asyncio.subprocess.Process) -> str:
    """Its root, once it takes calls."""
    *_, url = await said(started)
    return url


class Engine:
    def __init__(self, process: asyncio.subprocess.Process, url: str, log: Path) -> None:
        self.process = process
        self.url = url
        self._log = log

    def logged(self) -> dict[str, LoggedCall]:
        """By request id. A kill may leave half a line at the end."""
        lines = self._log.read_bytes().split(b"\n")[:-1] if self._log.exists() else []
        calls = [msgspec.json.decode(line, type=LoggedCall) for line in lines]
        return {call.request_id: call for call in calls}


@asynccontextmanager
async def engine(folder: Path, name: str, tokenizer: Path, script: Script) -> AsyncIterator[Engine]:
    """The scripted engine, as a vLLM that trains would be there."""
    told, log = folder / f"{name}.json", folder / f"{name}.log"
    told.write_bytes(msgspec.json.encode(script))
    files = ("--tokenizer", str(tokenizer), "--script", str(told), "--log", str(log))
    async with process("stenograph.engine.scripted_server", "--scale-out", *files) as started:
        yield Engine(started, await serving(started), log)


@asynccontextmanager
async def gateway(engine: Engine, tokenizer: Path, store: Path) -> AsyncIterator[str]:
    """`stenograph serve` before it."""
    where = ("--engine", f"vllm={engine.url}", "--tokenizer", str(tokenizer), "--store", str(store), "--port", "0")
    async with process("stenograph", "serve", *where) as started:
        yield await serving(started)
