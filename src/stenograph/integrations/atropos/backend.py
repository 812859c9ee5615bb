"""Who samples for a managed server, and the one gateway before it.

A rollout has a managed server of its own, often thousands in a process; to read a tokenizer and learn a template takes
a second. So those over the same server, with the same tokenizer, are sessions of one gateway, which lives as long as
the event loop that it runs on.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Hashable
from typing import Any, NamedTuple

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.assets.trainers import Brought, brought
from stenograph.config import Settings
from stenograph.core import LogprobKind
from stenograph.engine.engine import Engine
from stenograph.errors import ConfigError
from stenograph.furnish import renderer_of
from stenograph.gateway import Gateway
from stenograph.integrations.atropos.engine import SPLIT, ServerEngine
from stenograph.render.grammar import CALL_PARSERS
from stenograph.render.renderer import Renderer
from stenograph.render.template import Template

LINES = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}"
    "{% if not loop.last %}{{ '\\n' }}{% endif %}{% endfor %}"
)
"""What a conversation is where no template writes it, for base models."""
LIMITS = {"train": 512, "eval": 64}
"""Requests at once, over an engine of ours: `num_max_requests_at_once` and `num_requests_for_eval` of its configs. Its
own server objects count for themselves."""
TIMEOUT = 1200.0
"""Seconds; the `timeout` of its configs."""
UNCOUNTED = 1 << 16


class Running(NamedTuple):
    gateway: Gateway
    room: dict[str, asyncio.Semaphore]


class _Shared:
    """Of one event loop."""

    def __init__(self) -> None:
        self.started: dict[Hashable, asyncio.Task[Running]] = {}
        self.kept: list[object] = []
        """What the keys are the ids of, and the generators that hold the gateways open."""


_SHARED: dict[asyncio.AbstractEventLoop, _Shared] = {}


class Backend:
    def __init__(self, server: Any, tokenizer: Any, tool_parser: str | None) -> None:
        """`server`: an Atropos server, an engine of ours (`KIND=WHERE`, or an `Engine`), or a `Gateway` that runs."""
        self.server = server
        self.tokenizer = tokenizer if tokenizer is not None else getattr(server, "tokenizer", None)
        self._tool_parser = parser_named(tool_parser)
        if not (isinstance(server, str | Gateway) or self.is_server or hasattr(server, "start")):
            kind = type(server).__name__
            raise ConfigError(f"server: {kind} is neither an Atropos server, an engine, a gateway, nor KIND=WHERE")

    @property
    def is_server(self) -> bool:
        return hasattr(self.server, "tokens_and_logprobs_completion")

    @property
    def owns_gateway(self) -> bool:
        return not isinstance(self.server, Gateway)

    @property
    def timeout(self) -> float:
        return float(getattr(getattr(self.server, "config", None), "timeout", TIMEOUT))

    async def running(self) -> Running:
        if isinstance(self.server, Gateway):
            return Running(self.server, {})
        loop = asyncio.get_running_loop()
        started = _SHARED.setdefault(loop, _Shared()).started
        named = self.server if isinstance(self.server, str) else id(self.server)
        key = (named, self.tokenizer if isinstance(self.tokenizer, str) else id(self.tokenizer), self._tool_parser)
        if key not in started or _failed(started[key]):
            started[key] = asyncio.ensure_future(self._start(loop))
        return await asyncio.shield(started[key])

    @contextlib.asynccontextmanager
    async def counted(self, running: Running, split: str) -> AsyncIterator[None]:
        """A request's `split` says whose limits it counts under; whoever counts is told."""
        token = SPLIT.set(split)
        try:
            async with running.room.get(split, contextlib.nullcontext()):
                yield
        finally:
            SPLIT.reset(token)

    async def _start(self, loop: asyncio.AbstractEventLoop) -> Running:
        open_gateway = _open(await self._gateway(), loop)
        gateway = await anext(open_gateway)
        _SHARED[loop].kept += [self.server, self.tokenizer, open_gateway]
        limits = {} if self.is_server else LIMITS
        return Running(gateway, {split: asyncio.Semaphore(most) for split, most in limits.items()})

    async def _gateway(self) -> Gateway:
        options: dict[str, Any] = {"tool_parser": self._tool_parser, "in_flight": UNCOUNTED}
        if not self.is_server:
            given = self.tokenizer if isinstance(self.tokenizer, str | None) else with_template(brought(self.tokenizer))
            return Gateway(engine=self.server, tokenizer=given, **options)
        given = with_template(await asyncio.to_thread(self.brought))
        return Gateway(engine=self._engine(given), tokenizer=given, model=self.model, **options)

    def _engine(self, given: Brought) -> Engine:
        return ServerEngine(
            self.server,
            given.tokenizer,
            model=self.model,
            logprob_kind=_kind(self.server),
        )

    @property
    def model(self) -> str:
        return str(getattr(getattr(self.server, "config", None), "model_name", "default"))

    @functools.cached_property
    def renderer(self) -> Renderer:
        """For whoever cannot wait for a gateway."""
        given = with_template(self.brought())
        return renderer_of(Settings(), given.files, given.tokenizer, given.template)

    def brought(self) -> Brought:
        """The tokenizer that was given, or that the server has, or that its config names."""
        if self.tokenizer is not None and not isinstance(self.tokenizer, str):
            return brought(self.tokenizer)
        config = getattr(self.server, "config", None)
        named = (self.tokenizer, getattr(config, "tokenizer_name", "none"), getattr(config, "model_name", "none"))
        name = next((name for name in named if name not in (None, "none")), None)
        if name is None:
            raise ConfigError(f"{type(self.server).__name__} names no tokenizer: give one, ids are sent and recorded")
        files = load_model_files(name)
        return Brought(files, load_tokenizer(files))


def with_template(given: Brought) -> Brought:
    if given.template is not None or given.files.chat_template is not None:
        return given
    return given._replace(template=Template(LINES, {}))


def parser_named(name: str | None) -> str:
    """vLLM's names say which family writes the calls; here that is learned from the template, whatever its name."""
    return name if name in (*CALL_PARSERS, "none") else "auto"


def _kind(server: object) -> LogprobKind:
    """SGLang's are after temperature, unless it was told otherwise; vLLM's are the model's own."""
    named = f"{type(server).__name__} {getattr(getattr(server, 'config', None), 'server_type', '')}"
    return "temperature" if "sglang" in named.lower() else "raw"


def _failed(start: asyncio.Task[Running]) -> bool:
    return start.done() and (start.cancelled() or start.exception() is not None)


async def _open(gateway: Gateway, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[Gateway, None]:
    """A loop that ends closes the generators that it has seen: this gateway with them."""
    try:
        async with gateway:
            yield gateway
    finally:
        _SHARED.pop(loop, None)
