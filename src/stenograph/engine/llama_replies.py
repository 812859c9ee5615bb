"""Replies of a llama.cpp server, ours or somebody's: a stream for each choice, ended where the reply ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from stenograph.core import Delta, Request
from stenograph.engine.http import Http, Refusal, blamed
from stenograph.engine.interleave import interleave
from stenograph.engine.llamacpp import body_of, chunk_of, delta_of
from stenograph.engine.log import EngineLog, Transcript
from stenograph.engine.stops import StopWatch
from stenograph.errors import CallerError, ContextLengthExceeded, EngineError, StenographError
from stenograph.render.tokenizer import Tokenizer


class Replies:
    def __init__(
        self,
        http: Http,
        tokenizer: Tokenizer,
        model: str,
        *,
        vocab_size: int,
        eos: int | None,
        context: int,
        slots: int,
    ) -> None:
        """`tokenizer`: for stop strings. `context`: tokens a slot holds. Who waits for one of the `slots`, waits here:
        in the server it would occupy a thread that answers for its health."""
        self.http = http
        self.vocab_size = vocab_size
        self.context = context
        self._tokenizer = tokenizer
        self._model = model
        self._eos = eos
        self._slots = asyncio.Semaphore(slots)

    async def generate(self, request: Request, log: EngineLog) -> AsyncGenerator[Delta, None]:
        self._admit(request)
        transcript = Transcript(log, request)
        aborted = True
        try:
            choices = [self._choice(request, choice, transcript) for choice in range(request.n)]
            async with aclosing(interleave(choices)) as deltas:
                async for delta in deltas:
                    yield delta
            aborted = False
        except StenographError:
            aborted = False
            raise
        finally:
            transcript.close(aborted=aborted)

    def _admit(self, request: Request) -> None:
        """What the server would refuse in words of its own, or drop without any."""
        if len(request.prompt) >= self.context:
            raise ContextLengthExceeded.of(len(request.prompt), self.context, "messages")
        if any(not 0 <= id < self.vocab_size for id in request.sampling.logit_bias):
            raise CallerError(f"a bias on a token outside the vocabulary of {self.vocab_size}", param="logit_bias")

    async def _choice(self, request: Request, choice: int, transcript: Transcript) -> AsyncGenerator[Delta, None]:
        """Ends at the first token that ends the reply; closing the stream there ends the generation, too."""
        watch = StopWatch(request.sampling, self._tokenizer, self._eos)
        seen = 0
        try:
            events = self.http.events("/completion", body_of(request, choice, self.context))
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
        raise EngineError(f"{self.http.label} ended its answer without a finish")

    def _blame(self, refusal: Refusal) -> StenographError:
        if refusal.status in (400, 413, 422):
            return CallerError(f"{self.http.label} refuses: {refusal.words}")
        return blamed(self.http.label, refusal)
