"""`ManagedServer`: Atropos' recorder, as one session of a gateway. It keeps the gateway's record, and no other."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import openai
from openai.types import Completion
from openai.types.chat import ChatCompletion

from stenograph.core import JSON
from stenograph.errors import ConfigError
from stenograph.gateway import HERE, Gateway, Session
from stenograph.integrations.atropos import nodes, prompts, scores
from stenograph.integrations.atropos.backend import Backend
from stenograph.integrations.atropos.client import options_for
from stenograph.integrations.atropos.engine import spelled
from stenograph.integrations.atropos.leaving import on_leaving
from stenograph.integrations.atropos.nodes import SequenceNode, State
from stenograph.integrations.atropos.speech import Speech, as_json

Answer = TypeVar("Answer", ChatCompletion, Completion)


class _Current(NamedTuple):
    """Between two resets."""

    gateway: Gateway
    session: Session
    speech: Speech
    leave: Callable[[], object]


class ManagedServer:
    def __init__(
        self,
        server: Any,
        tokenizer: Any = None,
        track_tree: bool = False,
        tool_parser: str | None = None,
        preserve_think_blocks: bool = False,
    ) -> None:
        """`server`: any of Atropos' server objects, or an engine of ours (`"vllm=URL"`, an `Engine`, a `Gateway`).
        `preserve_think_blocks`: reasoning that was sampled stays in the prompts of later turns; else the template says,
        and where it takes reasoning away the turn forks."""
        self.server = server
        self.track_tree = track_tree
        self._backend = Backend(server, tokenizer, tool_parser)
        self.tokenizer = self._backend.tokenizer
        self._history = "verbatim" if preserve_think_blocks else "template"
        self._current: _Current | None = None
        timeout = self._backend.timeout
        self._client = openai.AsyncOpenAI(**options_for(self.opened, f"{HERE}/v1"), timeout=timeout)

    async def chat_completion(self, **fields: Any) -> ChatCompletion:
        speech, body = (await self._now()).speech, as_json(fields)
        body["messages"] = speech.as_recorded(body.get("messages", []))
        return speech.as_there(await self._asked("/chat/completions", body, ChatCompletion))

    async def completion(self, **fields: Any) -> Completion:
        return await self._asked("/completions", as_json(fields), Completion)

    def get_state(self) -> State:
        if self._current is None:
            return {"sequences": {}, "tree": {}} if self.track_tree else {"nodes": []}
        gateway, session = self._current[:2]
        turns = list(session.turns.values())
        return nodes.state(turns, gateway.renderer.tokenizer, track_tree=self.track_tree)

    def reset(self) -> None:
        """Forgets. In a gateway of the caller's own the record stays, and the session is complete."""
        current, self._current = self._current, None
        if current is not None:
            current.leave()

    async def get_logprobs(self, **fields: Any) -> dict[str, Any]:
        """How likely each token of a prompt is: of `messages`, a `prompt`, or `input_ids`."""
        running, body = await self._backend.running(), as_json(fields)
        if "messages" in body:
            body |= await self._prompt(body.pop("messages"), body.pop("tools", None))
        async with self._backend.counted(running, body.get("split", "train")):
            if self._backend.is_server:
                return await scores.of_server(self.server, body)
            return await scores.of_engine(running.gateway, body)

    @property
    def current_nodes(self) -> list[SequenceNode]:
        listed: list[SequenceNode] = self.get_state()["nodes"]
        return listed

    @property
    def sequences(self) -> dict[str, SequenceNode]:
        keyed: dict[str, SequenceNode] = self.get_state()["sequences"]
        return keyed

    async def opened(self) -> tuple[Gateway, Session]:
        """The gateway, and the session that all calls are recorded in until the next reset."""
        current = await self._now()
        return current.gateway, current.session

    async def _now(self) -> _Current:
        gateway = (await self._backend.running()).gateway
        if self._current is None:
            session = gateway.session(history=self._history)
            speech = Speech(session.turns, gateway.renderer.tokenizer)
            leave = on_leaving(self, session, kept=not self._backend.owns_gateway)
            self._current = _Current(gateway, session, speech, leave)
        return self._current

    async def _asked(self, path: str, body: dict[str, JSON], kind: type[Answer]) -> Answer:
        running = await self._backend.running()
        split = str(body.pop("split", "train"))
        async with self._backend.counted(running, split):
            return await self._client.post(path, cast_to=kind, body={"model": running.gateway.model, **body})

    async def _prompt(self, messages: Sequence[JSON], tools: JSON) -> dict[str, JSON]:
        gateway, _, speech, _ = await self._now()
        told = speech.as_recorded(messages)
        ids = await prompts.ids(self._client, {"messages": told, **({"tools": tools} if tools else {})})
        return {"prompt": spelled(gateway.renderer.tokenizer, ids), "input_ids": ids}

    def _convert_messages_to_prompt(self, messages: Sequence[Mapping[str, JSON]], tools: Any = None) -> str:
        """The text of a conversation's prompt. Environments call it, for all that its name says."""
        return prompts.text(self._backend, as_json({"messages": list(messages), "tools": tools}))

    def _get_translator(self) -> Speech | None:
        """Likewise. None before the first call, when there is nothing to translate."""
        return self._current.speech if self._current is not None else None


@contextlib.asynccontextmanager
async def managed_server(
    server: Any,
    tokenizer: Any = None,
    base_url: str | None = None,
    preserve_think_blocks: bool = False,
    *,
    track_tree: bool = False,
    tool_parser: str | None = None,
) -> AsyncIterator[ManagedServer]:
    """In place of `server_manager.managed_server(tokenizer=…)`: `server` may be the manager. Forgotten at its end."""
    chosen = _chosen(server.servers, base_url) if hasattr(server, "servers") else server
    parser = tool_parser or getattr(server, "tool_parser", None)
    managed = ManagedServer(chosen, tokenizer, track_tree, parser, preserve_think_blocks)
    try:
        yield managed
    finally:
        managed.reset()


def _chosen(servers: Sequence[Any], base_url: str | None) -> Any:
    """The one that is named; else, of those that are well, the one with the most room, as there."""
    if base_url is not None:
        named = [one for one in servers if getattr(getattr(one, "config", None), "base_url", None) == base_url]
        if not named:
            raise ConfigError(f"none of the {len(servers)} servers is at {base_url}")
        return named[0]
    well = [one for one in servers if getattr(one, "server_healthy", True)] or list(servers)
    return max(well, key=lambda one: getattr(getattr(one, "sem", None), "_value", 0))
