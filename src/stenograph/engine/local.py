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
from stenograph.engine.http import Http, Refusal
from stenograph.engine.interleave import interleave
from stenograph.engine.llama_process import LlamaProcess, launch
from stenograph.engine.llama_settings import Settings
from stenograph.engine.llamacpp import MAX_TOP_LOGPROBS, SUPPORTS, body_of, chunk_of, delta_of
from stenograph.engine.log import EngineLog, Transcript
from stenograph.engine.muted import ModelFacts, mute
from stenograph.engine.stops import StopWatch
from stenograph.errors import CallerError, ContextLengthExceeded, EngineError, EngineUnavailable, StenographError
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
    facts: ModelFacts
    context: int


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
        self._slots = asyncio.Semaphore(SLOTS)
        """Who waits, waits here: in the server it would occupy a thread that answers for its health."""
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
            max_model_len=server.context,
            logprob_kind=kind,
            supports=SUPPORTS,
            max_top_logprobs=MAX_TOP_LOGPROBS,
            vocab_size=server.facts.vocab_size,
        )

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        server = self._admit(request)
        transcript = Transcript(EngineLog(None) if logprob_kind.is_probe(request) else self._log, request)
        aborted = True
        try:
            choices = [self._choice(server, request, choice, transcript) for choice in range(request.n)]
            async with aclosing(interleave(choices)) as deltas:
                async for delta in deltas:
                    yield delta
            aborted = False
        except StenographError:
            aborted = False
            raise
        finally:
            transcript.close(aborted=aborted)

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
        return _Server(process, Http(self._name, address, key, SILENCE_SECONDS, reconnect=True), facts, context)

    async def _unload(self) -> None:
        if self._server:
            server, self._server = self._server, None
            await server.http.close()
            await server.process.close()

    def _admit(self, request: Request) -> _Server:
        """What the server would refuse in words of its own, or drop without any."""
        if self._server is None:
            raise EngineUnavailable(f"{self._name} is not running")
        context, vocab_size = self._server.context, self._server.facts.vocab_size
        if len(request.prompt) >= context:
            raise ContextLengthExceeded(
                f"the prompt has {len(request.prompt)} tokens, and the context of {self._model} holds {context}",
                param="messages",
            )
        if any(not 0 <= id < vocab_size for id in request.sampling.logit_bias):
            raise CallerError(f"a bias on a token outside the vocabulary of {vocab_size}", param="logit_bias")
        return self._server

    async def _choice(
        self, server: _Server, request: Request, choice: int, transcript: Transcript
    ) -> AsyncGenerator[Delta, None]:
        """Ends at the first token that ends the reply; closing the stream there ends the generation, too."""
        watch = StopWatch(request.sampling, self._tokenizer, server.facts.eos)
        seen = 0
        try:
            events = server.http.events("/completion", body_of(request, choice, server.context))
            async with self._slots, aclosing(events):
                async for event in events:
                    chunk = chunk_of(event)
                    transcript.heard(choice, chunk.tokens, chunk.logprobs)
                    seen += len(chunk.tokens)
                    delta = delta_of(chunk, request, choice, seen, watch.end_of(chunk.tokens) or chunk.finish)
                    if delta.finish:
                        transcript.finished(choice, delta.finish)
                    yield delta
                    if delta.finish:
                        return
        except Refusal as refusal:
            raise self._blame(refusal) from refusal
        raise EngineError(f"{self._name} ended its answer without a finish")

    def _blame(self, refusal: Refusal) -> StenographError:
        match refusal.status:
            case 400:
                return CallerError(f"{self._name} refuses: {refusal.words}")
            case 503:
                return EngineUnavailable(f"{self._name} answers {refusal}")
            case _:
                return EngineError(f"{self._name} answers {refusal}")


def _threads() -> int:
    """One core is left to the rest of us. llama.cpp's threads spin until all are there, so one that finds its core
    taken holds up the others: with a thread on each of two cores, 230 tokens/s became 30 when another program ran; with
    one thread less they are 130, whatever else runs."""
    return max(1, min(MOST_THREADS, (os.cpu_count() or 1) - 1))
