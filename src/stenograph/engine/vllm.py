"""vLLM over HTTP (0.10.2 or later: ids in, ids out).

`/v1/completions`, always streamed: one path for every call, and closing the connection is what aborts it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from stenograph.core import Delta, EngineInfo, Request
from stenograph.engine import logprob_kind
from stenograph.engine.http import Http, Refusal
from stenograph.engine.vllm_wire import GUIDES, SUPPORTS, Reader, body_of
from stenograph.errors import (
    CallerError,
    ConfigError,
    ContextLengthExceeded,
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    Overloaded,
    StenographError,
)

SILENCE_SECONDS = 600.0
"""A request may wait that long in vLLM's queue before its first token, under the load of a training run."""
MAX_TOP_LOGPROBS = 20
"""vLLM's default for `--max-logprobs`."""
OVERFLOW = "maximum context length"
"""In the message of every release; the field that it blames has changed."""


class _Model(msgspec.Struct):
    id: str
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


class VllmEngine:
    """Prompts are sent as they are: `evidence.checked` has seen that every id is in the vocabulary."""

    def __init__(
        self,
        url: str,
        name: str = "vllm-0",
        model: str | None = None,
        api_key: str | None = None,
        timeout: float = SILENCE_SECONDS,
    ) -> None:
        """`model`: which of the models (and adapters) it serves; None: the first. `timeout`: seconds of silence."""
        self._name = name
        self._wanted = model
        self._http = Http(name, url, api_key, timeout)
        self._model = _Model(model or "")
        """What requests ask for: known after `start`."""

    async def start(self) -> EngineInfo:
        """May be called again, after a failure or when the server was restarted with another model."""
        self._model = await self._served()
        if not self._model.max_model_len:
            raise EngineError(f"{self._http.label} does not say how long a context of {self._model.id} may be")
        return EngineInfo(
            name=self._name,
            kind="vllm",
            model=self._model.id,
            max_model_len=self._model.max_model_len,
            logprob_kind=await logprob_kind.probe(self._http.label, self.generate),
            supports=frozenset(SUPPORTS),
            guides=frozenset(GUIDES),
            max_top_logprobs=MAX_TOP_LOGPROBS,
        )

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        reader = Reader(self._http.label, request)
        body = body_of(request, self._model.id)
        try:
            async with aclosing(self._http.events("/v1/completions", body)) as events:
                async for event in events:
                    for delta in reader.read(event):
                        yield delta
        except Refusal as refusal:
            raise self._blame(refusal, request) from refusal
        reader.close()

    async def healthy(self) -> bool:
        return await self._http.healthy("/health")

    async def close(self) -> None:
        await self._http.close()

    async def _served(self) -> _Model:
        try:
            answer = await self._http.get("/v1/models")
            models = msgspec.json.decode(answer, type=_Models).data
        except Refusal as refusal:
            raise self._fault(refusal) from refusal
        except msgspec.DecodeError as error:
            raise EngineError(f"{self._http.label} does not list its models as vLLM does: {error}") from error
        for model in models:
            if self._wanted in (None, model.id):
                return model
        names = ", ".join(model.id for model in models) or "no model"
        raise ConfigError(f"{self._http.label} serves {names}" + (f", not {self._wanted}" if self._wanted else ""))

    def _blame(self, refusal: Refusal, request: Request) -> StenographError:
        """Whose fault a refused generation is. A prompt that fills the context exactly is refused in other words."""
        if refusal.status not in (400, 413, 422):
            return self._fault(refusal)
        full = self._model.max_model_len is not None and len(request.prompt) >= self._model.max_model_len
        if full or OVERFLOW in refusal.words:
            return ContextLengthExceeded(refusal.words, param="messages")
        return CallerError(refusal.words, param=refusal.param and refusal.param.removeprefix("body."))

    def _fault(self, refusal: Refusal) -> StenographError:
        said = f"{self._http.label} answers {refusal}"
        match refusal.status:
            case 429:
                return Overloaded(said, retry_after=refusal.retry_after)
            case 503:
                return EngineUnavailable(said)
            case 408 | 504:
                return EngineTimeout(said)
            case _:
                return EngineError(said)
