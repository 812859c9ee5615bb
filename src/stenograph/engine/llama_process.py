"""Starts llama.cpp's server beside us, and ends it with us."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from importlib.util import find_spec

import msgspec

from stenograph.engine.llama_settings import Ready, Settings
from stenograph.errors import ConfigError

MODULE = "stenograph.engine.llama_server"
MISSING = "the embedded engine needs xllamacpp: pip install 'stenograph[local]'"
END_SECONDS = 5.0
"""How long it may take to stop by itself: it stops between two tokens."""
ERROR = re.compile(r"^[\d.]+ E (?P<words>.*)$", re.MULTILINE)
"""A line of its log: time, level, words."""
KEPT = 2**14
"""Bytes of it that are kept."""


async def launch(settings: Settings, called: str) -> tuple[LlamaProcess, str]:
    """The process and its server's address, once the model is loaded. `called`: the model, as the operator named it."""
    if find_spec("xllamacpp") is None:
        raise ConfigError(MISSING)
    quiet = {**os.environ, "GGML_NO_BACKTRACE": "1"}
    # In a session of its own, so that Ctrl-C reaches it through us, after what is in flight.
    process = LlamaProcess(
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", MODULE), stdin=PIPE, stdout=PIPE, stderr=PIPE, env=quiet, start_new_session=True
        )
    )
    try:
        return process, await process.load(settings, called)
    except BaseException:
        await process.close()
        raise


class LlamaProcess:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._said = b""
        self._listening = asyncio.create_task(self._listen())

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    async def load(self, settings: Settings, called: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(msgspec.json.encode(settings) + b"\n")
        line = await self._process.stdout.readline()
        if not line:
            await self._process.wait()
            await self._listening
            raise ConfigError(f"{called}: llama.cpp cannot load it: {self._reason()}")
        return msgspec.json.decode(line, type=Ready).address

    def _reason(self) -> str:
        """In its own words: the first error, which is the cause of the others, or else what it said last."""
        said = self._said.decode(errors="replace").strip()
        if error := ERROR.search(said):
            return error["words"]
        return said.splitlines()[-1] if said else f"it ended with {self._process.returncode}"

    async def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), END_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._listening

    async def _listen(self) -> None:
        """To the end, since a full pipe would stop the server; kept is the beginning, which explains a failure."""
        assert self._process.stderr
        while chunk := await self._process.stderr.read(KEPT):
            if len(self._said) < KEPT:
                self._said += chunk
