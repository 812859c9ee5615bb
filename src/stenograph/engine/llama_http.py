"""Somebody's llama.cpp server, by its URL.

Unlike the embedded one its vocabulary has text, so a reply that ends in half a character, or holds one while the next
token is read, is refused (`llamacpp.py` says why): such calls fail, and nothing is recorded.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from stenograph.core import Delta, EngineInfo, Request
from stenograph.engine import logprob_kind
from stenograph.engine.http import Http, Refusal, blamed
from stenograph.engine.llama_replies import Replies
from stenograph.engine.llamacpp import GUIDES, MAX_TOP_LOGPROBS, SUPPORTS
from stenograph.engine.log import EngineLog
from stenograph.errors import ConfigError, EngineError, EngineUnavailable
from stenograph.render.tokenizer import Tokenizer

SILENCE_SECONDS = 600.0
"""Reading a long prompt on a slow machine is silent, and no fault."""


class _Generation(msgspec.Struct):
    n_ctx: int
    """Of one slot."""


class _Properties(msgspec.Struct):
    default_generation_settings: _Generation
    total_slots: int = 1
    eos_token: str = ""


class _Facts(msgspec.Struct):
    n_vocab: int


class _Model(msgspec.Struct):
    id: str
    meta: _Facts | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


class LlamaHttpEngine:
    def __init__(
        self,
        url: str,
        tokenizer: Tokenizer,
        name: str = "llamacpp-0",
        api_key: str | None = None,
        timeout: float = SILENCE_SECONDS,
    ) -> None:
        """`tokenizer`: for stop strings. `timeout`: seconds of silence."""
        self._name = name
        self._tokenizer = tokenizer
        self._http = Http(name, url, api_key, timeout, reconnect=True)
        self._replies: Replies | None = None

    async def start(self) -> EngineInfo:
        """May be called again, after a failure or when the server was restarted with another model."""
        properties, model = await self._asked()
        vocab_size = model.meta.n_vocab if model.meta else self._tokenizer.vocab_size
        if vocab_size < self._tokenizer.vocab_size:
            raise ConfigError(f"{self._http.label} serves a model of {vocab_size} tokens: that is another tokenizer's")
        self._replies = Replies(
            self._http,
            self._tokenizer,
            model.id,
            vocab_size=vocab_size,
            eos=self._tokenizer.added.get(properties.eos_token),
            context=properties.default_generation_settings.n_ctx,
            slots=properties.total_slots,
        )
        return EngineInfo(
            name=self._name,
            kind="llamacpp",
            model=model.id,
            max_model_len=self._replies.context,
            logprob_kind=await logprob_kind.probe(self._http.label, self.generate),
            supports=SUPPORTS,
            guides=GUIDES,
            max_top_logprobs=MAX_TOP_LOGPROBS,
            vocab_size=vocab_size,
        )

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        if self._replies is None:
            raise EngineUnavailable(f"{self._name} was not started")
        async with aclosing(self._replies.generate(request, EngineLog(None))) as deltas:
            async for delta in deltas:
                yield delta

    async def healthy(self) -> bool:
        return await self._http.healthy("/health")

    async def close(self) -> None:
        await self._http.close()

    async def _asked(self) -> tuple[_Properties, _Model]:
        try:
            properties = msgspec.json.decode(await self._http.get("/props"), type=_Properties)
            models = msgspec.json.decode(await self._http.get("/v1/models"), type=_Models).data
        except Refusal as refusal:
            raise blamed(self._http.label, refusal) from refusal
        except msgspec.DecodeError as error:
            raise EngineError(f"{self._http.label} does not describe itself as llama.cpp does: {error}") from error
        if not models:
            raise ConfigError(f"{self._http.label} serves no model")
        return properties, models[0]
