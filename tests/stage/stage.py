"""A gateway on a stage: the whole HTTP path in this process, an engine that logs every word, a store that can fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import httpx2
import msgspec

from stenograph.clients import InProcess
from stenograph.core import JSON, Batch, Delta, Lesson, Request, SessionFacts, Teacher, WeightsSaid
from stenograph.engine.log import LoggedCall
from stenograph.engine.pool import Pool
from stenograph.engine.script import Fault, FaultKind, Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.errors import StoreError
from stenograph.gateway import HERE, Gateway
from stenograph.house import House
from stenograph.origin import Weights
from stenograph.render.tokenizer import Tokenizer
from stenograph.session.tree import Tree
from stenograph.store.store import Record, Store, StoredSession, TurnsCommitted
from tests.stage.models import Model
from tests.stage.stores import Load
from tests.stage.talk import Answer, heard
from tests.stage.witness import Witness


class Watched(ScriptedEngine):
    """Says when a call has reached it, and what came of each."""

    def __init__(self, script: Script, tokenizer: Tokenizer) -> None:
        super().__init__(script, tokenizer)
        self.arrived: asyncio.Queue[str] = asyncio.Queue()
        """Request ids, as they come."""
        self.left: asyncio.Queue[str] = asyncio.Queue()
        """Request ids, as they end, well or not."""
        self.refusal: Exception | None = None
        """Raised at each call, where there is one."""

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        self.arrived.put_nowait(request.id)
        try:
            if self.refusal is not None:
                raise self.refusal
            async with aclosing(super().generate(request)) as deltas:
                async for delta in deltas:
                    yield delta
        finally:
            self.left.put_nowait(request.id)

    @contextmanager
    def faulty(self, kind: FaultKind) -> Iterator[None]:
        before = self.script
        self.script = msgspec.structs.replace(before, faults=(Fault(kind, every=1),))
        try:
            yield
        finally:
            self.script = before

    def forget(self) -> None:
        """Who arrived and left so far."""
        self.arrived, self.left = asyncio.Queue(), asyncio.Queue()

    def logged(self, request_id: str) -> LoggedCall:
        (found,) = (call for call in self.calls if call.request_id == request_id)
        return found


class Shaky:
    """A store that fails, or holds back, where a test wants it to."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.fails = False
        self.open = asyncio.Event()
        """While it is cleared, nothing is committed."""
        self.open.set()
        self.waiting = asyncio.Event()
        """Some turns are being committed."""

    async def commit(self, records: Sequence[Record]) -> None:
        if any(isinstance(record, TurnsCommitted) for record in records):
            self.waiting.set()
        await self.open.wait()
        if self.fails:
            raise StoreError("the disk is on fire")
        await self.inner.commit(records)

    @contextmanager
    def failing(self) -> Iterator[None]:
        self.fails = True
        try:
            yield
        finally:
            self.fails = False

    @contextmanager
    def holding(self) -> Iterator[None]:
        """It lets go whatever happens: a test that fails must not wait for it for ever."""
        self.open.clear()
        try:
            yield
        finally:
            self.open.set()

    async def delete(self, session_id: str) -> None:
        await self.inner.delete(session_id)

    def facts(self) -> Iterator[SessionFacts]:
        return self.inner.facts()

    def load(self, session_id: str) -> StoredSession | None:
        return self.inner.load(session_id)

    def blob(self, hash: str) -> bytes | None:
        return self.inner.blob(hash)

    def batches(self) -> Sequence[Batch]:
        return self.inner.batches()

    def weights(self) -> Sequence[WeightsSaid]:
        return self.inner.weights()

    def teachers(self) -> Sequence[Teacher]:
        return self.inner.teachers()

    def lessons(self, keys: Iterable[str]) -> Mapping[str, Lesson]:
        return self.inner.lessons(keys)

    async def close(self) -> None:
        await self.inner.close()


class Stage(Gateway):
    def __init__(
        self, model: Model, store: Store, script: Script | None = None, *, load: Load | None = None, **options: Any
    ) -> None:
        """`load`: how the record is read by somebody else."""
        self.watched = Watched(script or Script(), model.tokenizer)
        self.shaky = Shaky(store)
        self._model = model
        self.tokenizer = model.tokenizer
        super().__init__(engine=self.watched, **{"grace": 0.0, **options})
        self.witness = Witness(self.app, load or store.load)
        self.http = httpx2.AsyncClient(transport=InProcess(self.witness), base_url=HERE, timeout=None)

    async def _furnished(self) -> House:
        pool = Pool([self.watched], self.settings.in_flight)
        pool.tokenizer = self._model.tokenizer
        return msgspec.structs.replace(
            self._model.house,
            engines=pool,
            info=await pool.start(),
            weights=Weights(),
            store=self.shaky,
            history=self.settings.history,
            reasoning=self.settings.reasoning,
        )

    async def ask(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> Answer:
        sent = {"authorization": "Bearer EMPTY", **(headers or {})}
        response = await self.http.post(path, content=body, headers=sent)
        return heard(response.status_code, response.headers, response.content)

    async def say(
        self, session: str | None, messages: Sequence[JSON], headers: dict[str, str] | None = None, **fields: JSON
    ) -> Answer:
        body = {"model": "anything", "messages": messages, "logprobs": True, "return_token_ids": True, **fields}
        return await self.ask(chat(session), msgspec.json.encode(body), headers)

    async def get(self, path: str) -> JSON:
        response = await self.http.get(path)
        assert response.status_code == 200, response.text
        return response.json()

    async def tell(self, path: str, body: JSON) -> JSON:
        response = await self.http.post(path, content=msgspec.json.encode(body))
        assert response.status_code in (200, 201), response.text
        return response.json()

    def tree(self, session: str) -> Tree:
        """As it is in memory."""
        return self._at_desk().registry.must(session).tree

    async def settled(self) -> None:
        """Every call that was under way has ended."""
        registry = self._at_desk().registry
        for facts in registry.all_facts():
            await registry.flights(registry.must(facts.id)).ended()


class Clocked(Stage):
    """A gateway whose time passes when the test says so."""

    time = 1000.0

    async def _furnished(self) -> House:
        return msgspec.structs.replace(await super()._furnished(), now=lambda: self.time)


def chat(session: str | None) -> str:
    return f"/s/{session}/v1/chat/completions" if session else "/v1/chat/completions"


def user(text: str) -> JSON:
    return {"role": "user", "content": text}
