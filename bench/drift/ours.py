"""Stenograph itself: a gateway in this process, called over HTTP, with the simulated model for its engine."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import msgspec
import numpy as np

from bench.drift.model import CONTEXT, Model
from bench.drift.way import Refused, Sent, Trained
from stenograph.core import JSON, Call, Conversation, Delta, EngineInfo, Finish, Request, Turn
from stenograph.gateway import HERE, Gateway
from stenograph.house import House
from stenograph.live import revived
from tests.render.rollouts import NOW


class Engine:
    def __init__(self) -> None:
        self.models: dict[str, Model] = {}
        """By session: each rollout has a model of its own."""
        self.prompts: dict[str, tuple[int, ...]] = {}
        """By call: what was sent."""

    async def start(self) -> EngineInfo:
        return EngineInfo("simulated-0", "simulated", "policy", CONTEXT, "raw", frozenset({"seed"}))

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        number = request.sampling.seed
        assert number is not None
        made = await self.models[request.session_id].generate(request.prompt.tolist(), number, request.n)
        self.prompts[request.id] = made.prompt
        for choice, spoken in enumerate(made.choices):
            stop = spoken.ids[-1] if spoken.ids[-1] in request.sampling.stop_token_ids else None
            finish = Finish(spoken.finish, stop if spoken.finish == "stop" else None)
            ids, logprobs = np.array(spoken.ids, np.int32), np.array(spoken.logprobs, np.float32)
            yield Delta(choice, ids, logprobs, finish=finish)

    async def healthy(self) -> bool:
        return True

    async def close(self) -> None:
        self.models.clear()


class Here(Gateway):
    """At a fixed hour, with call ids that are the same in every run."""

    def __init__(self, tokenizer: str) -> None:
        self.simulated = Engine()
        super().__init__(engine=self.simulated, tokenizer=tokenizer)
        self.http = httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url=HERE, timeout=None)

    async def _furnished(self) -> House:
        numbers = itertools.count()
        furnished = await super()._furnished()
        return msgspec.structs.replace(furnished, now=NOW.timestamp, new_id=lambda: f"call{next(numbers):05}")


class Ours:
    def __init__(self, gateway: Here, session: str, model: Model) -> None:
        self._gateway = gateway
        self._session = gateway.session(session)
        self._asked: dict[str, tuple[dict[str, JSON], ...]] = {}
        """By call, its tools."""
        gateway.simulated.models[session] = model

    async def ask(self, body: dict[str, JSON], *, again: bool) -> list[dict[str, JSON]]:
        headers = {"x-stainless-retry-count": "1"} if again else {}
        path = f"/s/{self._session.id}/v1/chat/completions"
        response = await self._gateway.http.post(path, json=body, headers=headers)
        answer: Any = response.json()
        if response.status_code != 200:
            raise Refused(response.status_code, answer["error"]["message"])
        self._asked[answer["choices"][0]["turn_id"].partition(".")[0]] = tuple(body.get("tools", ()))
        return [choice["message"] for choice in answer["choices"]]

    def sent(self) -> list[Sent]:
        tree = revived(self._session.record()).tree
        return [self._one_sent(call, tree.path(call.parent), tree.messages(call.after)) for call in tree.calls.values()]

    def samples(self) -> list[Trained]:
        return [
            Trained(sample.tokens.tolist(), sample.mask.astype(bool).tolist(), sample.logprobs.tolist())
            for sample in self._session.samples()
        ]

    def forks(self) -> Counter[str]:
        calls = (committed.turns[0].call for committed in self._session.record().calls)
        return Counter(call.fork.reason.value for call in calls if call.fork)

    def _one_sent(self, call: Call, path: list[Turn], before: list[Any]) -> Sent:
        spans, end = [], 0
        for turn in path:
            start = end + len(turn.call.context)
            end = start + turn.sampled_tokens
            spans.append((start, end))
        meant = Conversation((*before, *call.messages), self._asked[call.id])
        return Sent(self._gateway.simulated.prompts[call.request_id], spans, meant)
