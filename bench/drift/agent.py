"""An agent: it keeps a list of messages, calls its model, and sends the list again, as every SDK loop does."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Sequence
from typing import TypeAlias

from bench.drift import words
from bench.drift.model import Line, Model
from bench.drift.way import Refused, Way
from stenograph.core import JSON

Said: TypeAlias = dict[str, JSON]
"""A message, as it stands in a body."""


class GaveUp(Exception):
    """A call failed that should not have: the rollout ends, as an exception of the SDK ends an agent."""


class Agent:
    def __init__(self, way: Way, model: Model, dice: random.Random) -> None:
        self.dice = dice
        self.calls_tools = model.voice.calls_tools
        self.markers = model.voice.markers
        self.messages: list[Said] = []
        self.calls = 0
        self.failures: list[Refused] = []
        self.answered: list[int] = []
        """The numbers of the calls whose answer the agent has."""
        self._way = way
        self._model = model
        self._numbers = 0

    # -- calls ---------------------------------------------------------------------------------------------

    async def ask(self, line: Line, messages: list[Said] | None = None, tools: Sequence[JSON] = ()) -> Said:
        [reply] = await self.choices((line,), messages, tools)
        return reply

    async def choices(
        self, lines: Sequence[Line], messages: list[Said] | None = None, tools: Sequence[JSON] = ()
    ) -> list[Said]:
        return await self._answer(self._body(lines, messages, tools), again=False)

    async def ask_twice(self, line: Line) -> Said:
        """The client runs into its timeout while the first answer is on its way, and repeats the call."""
        body = self._body((line,), None, ())
        await self._answer(body, again=False)
        [reply] = await self._answer(body, again=True)
        return reply

    async def ask_too_much(self, messages: list[Said]) -> None:
        """400 is the right answer, and no failure."""
        body = self._body((Line("Never said"),), messages, ())
        try:
            await self._way.ask(body, again=False)
        except Refused as refused:
            if refused.status != 400:
                self._failed(refused)

    async def at_once(self, *asked: tuple[Line, list[Said]]) -> list[Said]:
        """Both are under way before one is answered."""
        replies = await asyncio.gather(*(self.ask(*one) for one in asked), return_exceptions=True)
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        return [reply for reply in replies if isinstance(reply, dict)]

    def _body(self, lines: Sequence[Line], messages: list[Said] | None, tools: Sequence[JSON]) -> dict[str, JSON]:
        """The seed is how the model knows which lines are asked for; servers hand it through."""
        self._numbers += 1
        self._model.lines[self._numbers] = tuple(lines)
        body = {"model": "policy", "messages": list(messages or self.messages), "seed": self._numbers}
        return body | ({"n": len(lines)} if len(lines) > 1 else {}) | ({"tools": list(tools)} if tools else {})

    async def _answer(self, body: dict[str, JSON], *, again: bool) -> list[Said]:
        self.calls += 1
        try:
            replies = await self._way.ask(body, again=again)
            if len(replies) < body.get("n", 1):
                raise Refused(200, f"{len(replies)} choices where {body['n']} were asked for")
        except Refused as refused:
            self._failed(refused)
        self.answered.append(body["seed"])
        return replies

    def _failed(self, refused: Refused) -> None:
        self.failures.append(refused)
        raise GaveUp from refused

    # -- what it keeps -------------------------------------------------------------------------------------

    def text(self) -> str:
        return words.text(self.dice)

    def hear(self, *messages: Said) -> None:
        self.messages += messages

    async def converse(self, turns: int) -> None:
        """Ends with a question, so that anything may follow."""
        for _ in range(turns):
            reply = await self.ask(Line(self.text()))
            self.hear(echo(reply), user(self.text()))


def user(text: str) -> Said:
    return {"role": "user", "content": text}


def system(text: str) -> Said:
    return {"role": "system", "content": text}


def result(call: JSON, text: str) -> Said:
    return {"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": text}


def echo(reply: Said) -> Said:
    """All that was answered, but `content: null`, which has a habit of its own."""
    kept = {name: reply[name] for name in ("reasoning_content", "tool_calls") if reply.get(name) is not None}
    return {"role": "assistant", "content": reply["content"] or "", **kept}


def without_reasoning(reply: Said) -> Said:
    """Wherever the server has put it: in a field of its own, or in front of the text."""
    kept = echo(reply)
    kept.pop("reasoning_content", None)
    return kept | {"content": re.sub(r"(?s)^.*</think>\s*", "", kept["content"])}
