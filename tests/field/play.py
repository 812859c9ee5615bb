"""The agent's side of a field test: conversations over the real OpenAI SDK, on the HTTP path, and what they leave."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessage

from stenograph.clients import InProcess
from stenograph.core import JSON, Value
from tests.field import verdict
from tests.field.player import NAME, FieldStage, Line
from tests.laws.record import Record
from tests.stage.models import Model

TOOL: JSON = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Looks something up.",
        "parameters": {
            "type": "object",
            "properties": {
                "q": {"type": "string", "description": "what"},
                "n": {"type": "integer", "description": "how many"},
                "deep": {"type": "boolean", "description": "everywhere"},
            },
            "required": ["q"],
        },
    },
}
Echo = Callable[[ChatCompletionMessage], JSON]
"""What an agent keeps of an answer."""


def plain(message: ChatCompletionMessage) -> JSON:
    """As nearly every SDK loop sends it back: content (null where there are only calls) and calls, no reasoning."""
    calls = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls or ()]
    kept = {"role": "assistant", "content": message.content}
    return kept | {"tool_calls": calls} if calls else kept


def whole(message: ChatCompletionMessage) -> JSON:
    """As the SDK hands it over, reasoning and all."""
    return message.model_dump(exclude_none=True)


def user(text: str) -> JSON:
    return {"role": "user", "content": text}


def system(text: str) -> JSON:
    return {"role": "system", "content": text}


class Heard(Value):
    """An answer."""

    message: JSON
    """As the agent keeps it."""
    turn_id: str
    finish_reason: str


class Overheard(httpx2.AsyncBaseTransport):
    """Keeps what was asked, for law 9."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, asked: dict[str, bytes]) -> None:
        self._inner = inner
        self._asked = asked

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        self._asked[hashlib.sha256(body).hexdigest()] = body
        return await self._inner.handle_async_request(request)


class Play:
    """One session on a stage."""

    def __init__(self, stage: FieldStage) -> None:
        self.stage = stage
        self.session = stage.session()
        self.player = stage.player
        self.client = self.client_with(InProcess(stage.witness))

    def client_with(self, transport: httpx2.AsyncBaseTransport, **options: Any) -> openai.AsyncOpenAI:
        http = httpx2.AsyncClient(transport=Overheard(transport, self.stage.asked), timeout=None)
        return self.session.openai(http_client=http, **{"max_retries": 0, **options})

    def talk(self, *messages: JSON, tools: Sequence[JSON] = (), echo: Echo = plain, **options: Any) -> Talk:
        return Talk(self, list(messages), tools, echo, options)

    def record(self) -> Record:
        return Record(self.stage, self.session.id)

    async def left(
        self,
        *forks: str | tuple[str, int],
        notes: dict[str, int] | None = None,
        samples: int,
        attempts: dict[str, int] | None = None,
    ) -> None:
        """What the session has to have come to. `forks`: by call, '' for none, where it matters with the place."""
        await verdict.check_session(self.stage, self.record())
        told = await self.stage.get(f"/sessions/{self.session.id}")
        assert [_shown(call.fork, wanted) for call, wanted in zip(self.record().calls, forks, strict=True)] == [*forks]
        assert told["notes"] == (notes or {})
        assert told["branches"] == samples
        assert {kind: count for kind, count in told["attempts"].items() if count} == (attempts or {})
        assert not self.player.lines, "something was never said"


def _shown(fork: Any, wanted: str | tuple[str, int]) -> str | tuple[str, int]:
    if fork is None:
        return ""
    reason = str(fork.reason)
    return (reason, fork.at) if isinstance(wanted, tuple) else reason


class Talk:
    """One conversation, as an agent holds it."""

    def __init__(
        self, play: Play, messages: list[JSON], tools: Sequence[JSON], echo: Echo, options: dict[str, Any]
    ) -> None:
        self.messages = messages
        self.tools = tools
        self._play = play
        self._echo = echo
        self._options = options

    async def ask(self, *new: str | JSON, line: Line | None = None, **options: Any) -> Heard:
        """Says something new, and keeps what is answered. A text is a user's."""
        answer = await self.send(*new, lines=(line,) if line else (), **options)
        return self.keep(answer)

    async def send(self, *new: str | JSON, lines: Sequence[Line] = (), **options: Any) -> ChatCompletion:
        self.messages += [user(one) if isinstance(one, str) else one for one in new]
        self._play.player.lines += lines
        answer: ChatCompletion = await self._play.client.chat.completions.create(**self.request(**options))
        return answer

    def request(self, **options: Any) -> dict[str, Any]:
        asked = {"model": NAME, "messages": self.messages} | ({"tools": self.tools} if self.tools else {})
        return {**asked, **self._options, **options}

    def keep(self, answer: ChatCompletion, choice: int = 0) -> Heard:
        chosen = answer.choices[choice]
        message = self._echo(chosen.message)
        self.messages.append(message)
        return Heard(message, (chosen.model_extra or {})["turn_id"], chosen.finish_reason)

    async def call(self, *new: str | JSON, line: Line | None = None, **arguments: JSON) -> Heard:
        """The same where the model calls the tool."""
        called = Line(calls=(arguments,)) if line is None else line
        heard = await self.ask(*new, line=called)
        assert heard.message.get("tool_calls"), heard.message
        return heard

    def results(self, text: str = "found it") -> list[JSON]:
        """What the tool says to the calls of the last reply."""
        return [
            {"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": text}
            for call in self.messages[-1]["tool_calls"]
        ]


@asynccontextmanager
async def playing(model: Model, **options: Any) -> AsyncIterator[Play]:
    async with FieldStage(model, **options) as stage:
        yield Play(stage)
