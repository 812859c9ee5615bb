"""The engine's side of a field test: what the model says next is put into its mouth, in the form of its family, and is
sampled in tokens that are never quite those which the tokenizer would give."""

from __future__ import annotations

import datetime
import itertools
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from stenograph.core import JSON, Conversation, Delta, Message, Request, ToolCall, Value
from stenograph.engine.plan import Planner
from stenograph.engine.script import Script
from stenograph.engine.scripted import Scene
from stenograph.house import House
from stenograph.render.writing import ReplyWriter
from stenograph.store.memory import MemoryStore
from tests.render.rollouts import NOW, TOOL, Rollout
from tests.stage.models import Model
from tests.stage.stage import Stage, Watched

NAME = "policy"
CONTEXT = 16384
LISTED_ID = "zzzzzzzz"
"""Where a family's model writes its calls' ids, `ReplyWriter` begins each so."""
SEEN = 64
"""Tokens of the end of a prompt: enough to see whether it opens the reasoning."""


class Line(Value):
    """What the model says once."""

    says: str | None = None
    thinks: str | None = None
    calls: tuple[dict[str, JSON], ...] = ()
    """The arguments of each call of the one tool."""
    close: str | None = None
    """What it ends with; None: as its family does."""
    ids: tuple[int, ...] | None = None
    """Instead of all that: these ids as they stand."""


WHATEVER = Line("Fine.")


class Player(Watched):
    """Says its lines in the order in which the calls arrive. It has no guided decoding."""

    def __init__(self, model: Model) -> None:
        super().__init__(Script(model=NAME, max_model_len=CONTEXT, guides=()), model.tokenizer)
        renderer = model.house.renderer
        self.lines: deque[Line] = deque()
        self.hold_behind: int | None = None
        """After so many deltas of each call `gate` is closed."""
        self._family = renderer.family(Conversation((), (TOOL,)))
        self._writer = ReplyWriter(self._family, renderer.eos)
        self._voice = Rollout(renderer)
        self._tokenizer = model.tokenizer
        self._numbers = itertools.count()

    def admit(self, request: Request) -> Scene:
        said = tuple(self._spelled(request) for _ in range(request.n))
        self._planner = Planner(msgspec.structs.replace(self.script, replies=said), self._tokenizer)
        return super().admit(request)

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        count = 0
        async with aclosing(super().generate(request)) as deltas:
            async for delta in deltas:
                yield delta
                count += 1
                if count == self.hold_behind:
                    self.gate.clear()

    def ids_of(self, line: Line, *, thinking: bool) -> tuple[int, ...]:
        """`thinking`: the prompt has opened the reasoning."""
        return line.ids or tuple(self._voice.spelled(self._written(line, thinking)))

    def _spelled(self, request: Request) -> tuple[int, ...]:
        line = self.lines.popleft() if self.lines else WHATEVER
        opened = self._family.opens_thinking(self._tokenizer.decode(request.prompt[-SEEN:].tolist()))
        return self.ids_of(line, thinking=opened)

    def _written(self, line: Line, thinking: bool) -> str:
        calls = tuple(ToolCall("", "look", arguments) for arguments in line.calls)
        reply = Message("assistant", line.says, line.thinks, calls)
        text = self._writer.write(reply, thinking=thinking, close=line.close)
        return text.replace(LISTED_ID, f"call{next(self._numbers):04}")


class FieldStage(Stage):
    """A stage with a player, at a fixed hour: some templates write the date."""

    def __init__(self, model: Model, **options: Any) -> None:
        super().__init__(model, MemoryStore(), model_alias=[NAME], **options)
        self.player = self.watched = Player(model)
        self.asked: dict[str, bytes] = {}
        """The bodies of all calls, by their hash."""
        self.now: datetime.datetime = NOW

    async def _furnished(self) -> House:
        return msgspec.structs.replace(await super()._furnished(), now=lambda: self.now.timestamp())

    def later(self, *, days: int) -> None:
        """So much time has gone by, and idle sessions were looked for."""
        self.now += datetime.timedelta(days=days)
        self._at_desk().registry.expire()
