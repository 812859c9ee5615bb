"""vLLM over HTTP (0.10.2 or later: ids in, ids out).

Sampled by `/inference/v1/generate` where the server offers it and by `/v1/completions` where not, which is found out.
Always streamed: one path for every call, and closing the connection is what aborts it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import ModuleType

import msgspec

from stenograph.core import Delta, EngineInfo, Ids, Request
from stenograph.engine import logprob_kind, vllm_generate, vllm_wire
from stenograph.engine.http import Http, Refusal, blamed
from stenograph.engine.prompt_json import Speller, spelled
from stenograph.engine.scoring import FIRST, Scored
from stenograph.engine.vllm_score import score_body, scores_of
from stenograph.engine.vllm_wire import GUIDES, SUPPORTS
from stenograph.errors import (
    CallerError,
    ConfigError,
    ContextLengthExceeded,
    EngineError,
    EvidenceError,
    StenographError,
)

SILENCE_SECONDS = 600.0
"""A request may wait that long in vLLM's queue before its first token, under the load of a training run."""
MAX_TOP_LOGPROBS = 20
"""vLLM's default for `--max-logprobs`."""
OVERFLOW = ("maximum context length", "maximum model length")
"""In the messages of every release; the field that they blame has changed."""
NOT_OFFERED = (403, 404, 405)


class _Model(msgspec.Struct):
    id: str
    max_model_len: int | None = None


class _Paused(msgspec.Struct):
    is_paused: bool


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
        self._offers_generate = False
        self._speller = Speller()

    async def start(self) -> EngineInfo:
        """May be called again, after a failure or when the server was restarted with another model."""
        self._model = await self._served()
        if not self._model.max_model_len:
            raise EngineError(f"{self._http.label} does not say how long a context of {self._model.id} may be")
        self._offers_generate = await self._answers_generate()
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
        wire = self._wire(request)
        prompt = self._speller.spelled(request)
        reader = wire.Reader(self._http.label, request, prompt)
        body = wire.body_of(request, self._model.id, prompt)
        try:
            async with aclosing(self._http.events(wire.PATH, body)) as events:
                async for event in events:
                    for delta in reader.read(event):
                        yield delta
        except Refusal as refusal:
            raise self._blame(refusal, len(request.prompt)) from refusal
        reader.close()

    async def score(self, ids: Ids, top_k: int, start: int = FIRST) -> Scored:
        sent: list[int] = ids.tolist()
        try:
            answer = await self._http.post("/v1/completions", score_body(sent, top_k, self._model.id))
        except Refusal as refusal:
            raise self._blame(refusal, len(sent)) from refusal
        return scores_of(self._http.label, sent, top_k, start, answer)

    async def healthy(self) -> bool:
        return await self._http.healthy("/health")

    async def close(self) -> None:
        await self._http.close()

    async def hold(self) -> bool:
        """Only a server in development mode can: what is under way is frozen, and goes on under the new weights."""
        return await self._told("/pause?mode=keep")

    async def release(self) -> None:
        await self._told("/resume")

    async def held(self) -> bool:
        try:
            return msgspec.json.decode(await self._http.get("/is_paused"), type=_Paused).is_paused
        except (Refusal, msgspec.DecodeError):
            return False

    async def _told(self, path: str) -> bool:
        try:
            await self._http.post(path)
        except Refusal as refusal:
            if refusal.status in NOT_OFFERED:
                return False
            raise blamed(self._http.label, refusal) from refusal
        return True

    def _wire(self, request: Request) -> ModuleType:
        """At most 20 logprobs are told, and the sampled token's own takes a place among them on the better way."""
        tells_all = request.top_logprobs < MAX_TOP_LOGPROBS
        return vllm_generate if self._offers_generate and tells_all else vllm_wire

    async def _answers_generate(self) -> bool:
        """A server without it answers with a status that says so; one of before 0.11 has another form of it."""
        prompt = spelled(logprob_kind.PLAIN.prompt)
        body = vllm_generate.body_of(logprob_kind.PLAIN, self._model.id, prompt)
        reader = vllm_generate.Reader(self._http.label, logprob_kind.PLAIN, prompt)
        try:
            async with aclosing(self._http.events(vllm_generate.PATH, body)) as events:
                return any([list(reader.read(event)) async for event in events])
        except (Refusal, EvidenceError):
            return False

    async def _served(self) -> _Model:
        try:
            answer = await self._http.get("/v1/models")
            models = msgspec.json.decode(answer, type=_Models).data
        except Refusal as refusal:
            raise blamed(self._http.label, refusal) from refusal
        except msgspec.DecodeError as error:
            raise EngineError(f"{self._http.label} does not list its models as vLLM does: {error}") from error
        for model in models:
            if self._wanted in (None, model.id):
                return model
        names = ", ".join(model.id for model in models) or "no model"
        raise ConfigError(f"{self._http.label} serves {names}" + (f", not {self._wanted}" if self._wanted else ""))

    def _blame(self, refusal: Refusal, prompt_tokens: int) -> StenographError:
        """Whose fault a refusal is. A prompt that fills the context exactly is refused in other words."""
        if refusal.status not in (400, 413, 422):
            return blamed(self._http.label, refusal)
        full = self._model.max_model_len is not None and prompt_tokens >= self._model.max_model_len
        if full or any(words in refusal.words for words in OVERFLOW):
            return ContextLengthExceeded(refusal.words, param="messages")
        return CallerError(refusal.words, param=refusal.param and refusal.param.removeprefix("body."))
