"""The whole service as processes of its own, to be killed: an engine that keeps its log, and a gateway on a store."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from stenograph.assets import smollm2
from stenograph.engine.log import LoggedCall

START_SECONDS = 60.0


class Process:
    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self._process = process
        self.url = url

    async def kill(self) -> None:
        """As a power cut does it, as far as a process can be cut off: no handler runs."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def stop(self) -> int:
        if self._process.returncode is None:
            self._process.terminate()
        return await self._process.wait()


@asynccontextmanager
async def _running(command: Sequence[str], errors: Path) -> AsyncIterator[Process]:
    """Its last word of its one ready line is where it listens."""
    with errors.open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *command, stdout=asyncio.subprocess.PIPE, stderr=stderr
        )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        assert line, f"it did not start: see {errors}"
        yield Process(process, line.decode().split()[-1])
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class Engine:
    def __init__(self, url: str, log: Path) -> None:
        self.url = url
        self._log = log

    def logged(self) -> dict[str, LoggedCall]:
        """Written by the engine's own process, which nobody kills: whole lines, and the truth."""
        lines = self._log.read_bytes().splitlines() if self._log.exists() else []
        return {call.request_id: call for call in (msgspec.json.decode(line, type=LoggedCall) for line in lines)}


@asynccontextmanager
async def engine(folder: Path, script: str) -> AsyncIterator[Engine]:
    """The scripted engine, in vLLM's shape, with the bundled model's tokenizer."""
    (folder / "script.toml").write_text(script)
    (folder / "tokenizer.json").write_text(smollm2.read().tokenizer_json)
    log = folder / "engine.log"
    command = ["stenograph.engine.scripted_server", "--scale-out", "--tokenizer", str(folder)]
    files = ["--script", str(folder / "script.toml"), "--log", str(log)]
    async with _running([*command, *files], folder / "engine.err") as up:
        yield Engine(up.url, log)


@asynccontextmanager
async def gateway(folder: Path, engine: Engine, *options: str) -> AsyncIterator[Process]:
    command = ["stenograph", "serve", "--engine", f"vllm={engine.url}", "--tokenizer", "smollm2", "--port", "0"]
    store = str(folder / "store")
    async with _running([*command, "--store", store, "--grace", "1", *options], folder / "gateway.err") as up:
        yield up
