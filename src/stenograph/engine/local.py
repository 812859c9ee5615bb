"""The embedded engine: llama.cpp on a GGUF file, started and ended by us.

Why it is not simply llama.cpp's server: what that does to evidence (`llamacpp.py`, `muted.py`) and to the process that
it runs in (`llama_server.py`).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from stenograph.core import Delta, EngineInfo, Request
from stenograph.engine import logprob_kind
from stenograph.engine.http import Http
from stenograph.engine.llama_process import LlamaProcess, launch
from stenograph.engine.llama_replies import Replies
from stenograph.engine.llama_settings import Settings
from stenograph.engine.llamacpp import MAX_TOP_LOGPROBS, SUPPORTS
from stenograph.engine.log import EngineLog
from stenograph.engine.muted import mute
from stenograph.errors import EngineUnavailable
from stenograph.render.tokenizer import Tokenizer

SLOTS = 8
"""Replies at a time."""
MOST_THREADS = 8
"""More than that only wait for each other, with a model small enough for this."""
CONTEXT = 4096
"""Tokens a slot holds at most, prompt and reply together: for SmolLM2, at 23 KB each, 0.75 GB in all."""
SILENCE_SECONDS = 600.0
"""Reading a long prompt on a slow machine is silent, and no fault."""


class _Server(NamedTuple):
    process: LlamaProcess
    http: Http
    replies: Replies


class LocalEngine:
    def __init__(
        self, where: str, tokenizer: Tokenizer, *, model: str, name: str = "local-0", log: Path | None = None
    ) -> None:
        """`where`: a GGUF file. `tokenizer`: for stop strings. `model`: what to call it. `log`: see `log.py`."""
        self._file = Path(where)
        self._tokenizer = tokenizer
        self._model = model
        self._name = name
        self._log = EngineLog(log)
        self._server: _Server | None = None

    async def start(self) -> EngineInfo:
        """May be called again: the model is then loaded anew."""
        await self._unload()
        server = self._server = await self._load()
        try:
            kind = await logprob_kind.probe(self._name, self.generate)
        except BaseException:
            await self._unload()
            raise
        return EngineInfo(
            name=self._name,
            kind="local",
            model=self._model,
            max_model_len=server.replies.context,
            logprob_kind=kind,
            supports=SUPPORTS,
            max_top_logprobs=MAX_TOP_LOGPROBS,
            vocab_size=server.replies.vocab_size,
        )

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        if self._server is None:
            raise EngineUnavailable(f"{self._name} is not running")
        log = EngineLog(None) if logprob_kind.is_probe(request) else self._log
        async with aclosing(self._server.replies.generate(request, log)) as deltas:
            async for delta in deltas:
                yield delta

    async def healthy(self) -> bool:
        server = self._server
        return server is not None and server.process.running and await server.http.healthy("/health")

    async def close(self) -> None:
        await self._unload()
        self._log.close()

    async def _load(self) -> _Server:
        key = secrets.token_hex()
        with tempfile.TemporaryDirectory(prefix="stenograph-") as folder:
            muted = Path(folder) / self._file.name
            facts = await asyncio.to_thread(mute, self._file, muted)
            context = min(facts.trained_context or CONTEXT, CONTEXT)
            settings = Settings(str(muted), key, SLOTS, _threads(), context)
            process, address = await launch(settings, called=str(self._file))
        http = Http(self._name, address, key, SILENCE_SECONDS, reconnect=True)
        sizes = {"vocab_size": facts.vocab_size, "context": context, "slots": SLOTS}
        return _Server(process, http, Replies(http, self._tokenizer, self._model, eos=facts.eos, **sizes))

    async def _unload(self) -> None:
        if self._server:
            server, self._server = self._server, None
            await server.http.close()
            await server.process.close()


def _threads() -> int:
    """One core is left to the rest of us. llama.cpp's threads spin until all are there, so one that finds its core
    taken holds up the others: with a thread on each of two cores, 230 tokens/s became 30 when another program ran; with
    one thread less they are 130, whatever else runs."""
    return max(1, min(MOST_THREADS, (os.cpu_count() or 1) - 1))
