"""SGLang over HTTP: `/generate`, always streamed, a call for each choice, each aborted by its own name."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TypeVar

import msgspec

from stenograph.core import Delta, EngineInfo, Ids, Request
from stenograph.engine import logprob_kind
from stenograph.engine.http import Http, Refusal, blamed
from stenograph.engine.interleave import interleave
from stenograph.engine.scoring import FIRST, Scored
from stenograph.engine.sglang_wire import (
    GUIDES,
    REPEATED_EVERY,
    SUPPORTS,
    Offers,
    Reader,
    body_of,
    score_body,
    scores_of,
)
from stenograph.errors import CallerError, ContextLengthExceeded, EngineError, StenographError

_Told = TypeVar("_Told")
SILENCE_SECONDS = 600.0
"""A request may wait that long in SGLang's queue before its first token, under the load of a training run."""
MAX_TOP_LOGPROBS = 20
"""OpenAI's limit. SGLang has none, but each costs on every token."""
OVERFLOWS = ("context length", "maximum allowed length")


class _Model(msgspec.Struct):
    model_path: str
    served_model_name: str | None = None


class _Server(msgspec.Struct):
    context_length: int | None = None
    """None: the model's own."""
    max_total_num_tokens: int | None = None
    """What its cache holds: less than a context where memory is short."""
    max_req_input_len: int | None = None
    incremental_streaming_output: bool = False
    enable_deterministic_inference: bool = False
    enable_return_routed_experts: bool = False
    sampling_mask_max_tokens: int = 0
    """Where it is missing, there are no masks."""


class SglangEngine:
    """Prompts are sent as they are: `evidence.checked` has seen that every id is in the vocabulary, for one that is
    not kills SGLang."""

    def __init__(
        self, url: str, name: str = "sglang-0", api_key: str | None = None, timeout: float = SILENCE_SECONDS
    ) -> None:
        """`timeout`: seconds of silence."""
        self._name = name
        self._http = Http(name, url, api_key, timeout)
        self._server = _Server()
        """Known after `start`."""
        self._aborts: set[asyncio.Task[None]] = set()
        self._holding = False

    async def start(self) -> EngineInfo:
        """May be called again, after a failure or when the server was restarted with another model."""
        model = await self._told("/model_info", _Model)
        self._server = await self._told("/server_info", _Server)
        return EngineInfo(
            name=self._name,
            kind="sglang",
            model=model.served_model_name or model.model_path,
            max_model_len=self._room(),
            logprob_kind=await logprob_kind.probe(self._http.label, self.generate),
            supports=SUPPORTS | {"seed"} if self._server.enable_deterministic_inference else SUPPORTS,
            guides=GUIDES,
            max_top_logprobs=MAX_TOP_LOGPROBS,
        )

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The first choice's first token says that the prompt is in SGLang's cache: the others then find it there."""
        cached = asyncio.Event()
        choices = [self._choice(request, choice, cached) for choice in range(request.n)]
        async with aclosing(interleave(choices)) as deltas:
            async for delta in deltas:
                cached.set()
                yield delta

    async def score(self, ids: Ids, top_k: int, start: int = FIRST) -> Scored:
        sent: list[int] = ids.tolist()
        try:
            answer = await self._http.post("/generate", score_body(sent, top_k, start))
        except Refusal as refusal:
            raise self._blame(refusal, len(sent)) from refusal
        return scores_of(self._http.label, sent, top_k, start, answer)

    async def hold(self) -> bool:
        """Running requests go back to the queue with the tokens they have; what was computed for them is forgotten, as
        it has to be where the weights change."""
        await self._command("/pause_generation", b'{"mode":"retract"}')
        self._holding = True
        return True

    async def release(self) -> None:
        await self._command("/continue_generation", b"{}")
        self._holding = False

    async def held(self) -> bool:
        """By us: SGLang has no word for it."""
        return self._holding

    async def healthy(self) -> bool:
        return await self._http.healthy("/health")

    async def close(self) -> None:
        await asyncio.gather(*self._aborts)
        await self._http.close()

    async def _choice(self, request: Request, choice: int, cached: asyncio.Event) -> AsyncGenerator[Delta, None]:
        if choice:
            await cached.wait()
        rid = f"{request.id}-{choice}-{secrets.token_hex(4)}"
        server = self._server
        offers = Offers(server.sampling_mask_max_tokens, server.enable_return_routed_experts)
        body = body_of(request, choice, rid, 1 if server.incremental_streaming_output else REPEATED_EVERY, offers)
        reader = Reader(self._http.label, request, choice)
        ended = False
        try:
            async with aclosing(self._http.events("/generate", body)) as events:
                async for event in events:
                    for delta in reader.read(event):
                        ended = ended or delta.finish is not None
                        yield delta
            reader.close()
        except Refusal as refusal:
            ended = True
            raise self._blame(refusal, len(request.prompt)) from refusal
        finally:
            cached.set()
            if not ended:
                self._abort(rid)

    def _abort(self, rid: str) -> None:
        """By itself SGLang looks for a lost connection 2 s later. Nobody waits for this, and nothing hangs on it."""
        task = asyncio.ensure_future(self._aborted(rid))
        self._aborts.add(task)
        task.add_done_callback(self._aborts.discard)

    async def _aborted(self, rid: str) -> None:
        with suppress(EngineError, Refusal):
            await self._http.post("/abort_request", msgspec.json.encode({"rid": rid}))

    async def _command(self, path: str, body: bytes) -> None:
        try:
            await self._http.post(path, body)
        except Refusal as refusal:
            raise blamed(self._http.label, refusal) from refusal

    async def _told(self, path: str, shape: type[_Told]) -> _Told:
        try:
            return msgspec.json.decode(await self._asked(path), type=shape)
        except Refusal as refusal:
            raise blamed(self._http.label, refusal) from refusal
        except msgspec.DecodeError as error:
            raise EngineError(f"{self._http.label} does not answer {path} as SGLang does: {error}") from error

    async def _asked(self, path: str) -> bytes:
        """In older releases these paths begin with `get_`."""
        try:
            return await self._http.get(path)
        except Refusal as refusal:
            if refusal.status != 404:
                raise
            return await self._http.get(path.replace("/", "/get_", 1))

    def _room(self) -> int:
        known = [self._server.context_length, self._server.max_total_num_tokens]
        sizes = [size for size in known if size]
        if not sizes:
            raise EngineError(f"{self._http.label} does not say how long a context may be")
        return min(sizes)

    def _blame(self, refusal: Refusal, prompt_tokens: int) -> StenographError:
        if refusal.status not in (400, 413, 422):
            return blamed(self._http.label, refusal)
        longest = self._server.max_req_input_len
        full = longest is not None and prompt_tokens >= longest
        if full or any(words in refusal.words for words in OVERFLOWS):
            return ContextLengthExceeded(refusal.words, param="messages")
        return CallerError(refusal.words, param=refusal.param)
