"""Where episodes are played: one gateway for each engine, tokenizer and length of a trainer's process.

It lives on the trainer's event loop and has no port, since `self.client` is served in process. An agent that is a
program of its own, or in another thread, asks its session for a `base_url`: then the same application listens on this
host alone, on a free port, on the same loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import uvicorn

from stenograph.clients import openai_client
from stenograph.engine.given import GivenEngine
from stenograph.gateway import HERE, Gateway, Session
from stenograph.integrations.openrlhf.llm_engine import MAX_TOP_LOGPROBS, SUPPORTS, TrainersEngine, logprob_kind
from stenograph.integrations.openrlhf.token_ids import WithTokenIds
from stenograph.server.listening import LOOPBACK, bound, configured

MANY = 1 << 20
"""vLLM has a queue of its own, and a trainer begins as many rollouts at once as it wants."""
BOUNDS = {"in_flight": MANY, "max_calls": MANY, "max_open_sessions": MANY}

LIKENESS = ("name_or_path", "vocab_size", "special_tokens_map", "chat_template")


class Wanted(NamedTuple):
    """What an `execute` is called with, as far as a gateway depends on it."""

    llm_engine: Any
    hf_tokenizer: Any
    max_length: int
    params: type
    """vLLM's `SamplingParams`, or what stands for it."""

    @property
    def key(self) -> tuple[object, ...]:
        """Ray hands over a new copy of the tokenizer with every prompt: what it is like says whether it is the same."""
        likeness = repr([getattr(self.hf_tokenizer, name, None) for name in LIKENESS])
        return asyncio.get_running_loop(), id(self.llm_engine), self.max_length, likeness


class Place:
    def __init__(self, wanted: Wanted, settings: Mapping[str, Any]) -> None:
        self.model_name = str(getattr(wanted.hf_tokenizer, "name_or_path", "")) or "policy"
        self._llm_engine = wanted.llm_engine
        """Kept, so that its `id` stays its own."""
        self._loop = asyncio.get_running_loop()
        self._opening = threading.Lock()
        self._door: socket.socket | None = None
        self._serving: tuple[uvicorn.Server, asyncio.Task[None]] | None = None
        engine = GivenEngine(
            TrainersEngine(wanted.llm_engine, wanted.params),
            model=self.model_name,
            max_model_len=wanted.max_length,
            logprob_kind=logprob_kind(wanted.llm_engine),
            supports=SUPPORTS,
            name="openrlhf-0",
            max_top_logprobs=MAX_TOP_LOGPROBS,
        )
        self.gateway = Gateway(engine=engine, tokenizer=wanted.hf_tokenizer, **{**BOUNDS, **settings})

    def client(self, session: Session) -> Any:
        """Waits for as long as an engine takes, where the agent sets no timeout: no connection can be lost here."""
        app = WithTokenIds(self.gateway.app)
        return openai_client(app, f"{HERE}/s/{session.id}/v1", session.api_key, {"timeout": None})

    @property
    def url(self) -> str:
        """Also asked for in other threads: what is bound here is answered by the loop."""
        with self._opening:
            if self._door is None:
                self._door = bound(LOOPBACK, 0)
                self._door.listen()
                self._loop.call_soon_threadsafe(self._serve, self._door)
        return f"http://{LOOPBACK}:{self._door.getsockname()[1]}"

    def _serve(self, door: socket.socket) -> None:
        server = _Quiet(configured(self.gateway.app))
        self._serving = server, self._loop.create_task(server.serve(sockets=[door]))

    async def close(self) -> None:
        if self._serving is not None:
            server, task = self._serving
            server.should_exit = True
            await task
        await self.gateway.__aexit__(None, None, None)


class _Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the trainer's."""
        yield


class Places:
    """Those of one executor. They end with its process, as the trainer's actors do."""

    def __init__(self) -> None:
        self._open: dict[tuple[object, ...], asyncio.Task[Place]] = {}

    async def at(self, wanted: Wanted, settings: Mapping[str, Any]) -> Place:
        """Opened by the first of the episodes that begin together; the others wait for it."""
        key = wanted.key
        if key not in self._open:
            self._open[key] = asyncio.ensure_future(_opened(wanted, settings))
        opening = self._open[key]
        try:
            return await asyncio.shield(opening)
        except Exception:
            if self._open.get(key) is opening:
                del self._open[key]
            raise


async def _opened(wanted: Wanted, settings: Mapping[str, Any]) -> Place:
    place = Place(wanted, settings)
    await place.gateway.__aenter__()
    return place
