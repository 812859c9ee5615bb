"""What agents do to their history. Each is the same agent with one habit; the record stays true under all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stenograph.demo.agent import MAX_TOKENS, Agent

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion, ChatCompletionMessage

CUT = 12
"""Tokens: too few for a call of the tool."""


class Streaming(Agent):
    """Reads its answers as they come."""

    async def complete(self, **options: Any) -> ChatCompletion:
        from openai.lib.streaming.chat import ChatCompletionStreamState

        state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
        asked = {**self.request(), **options, "stream_options": {"include_usage": True}}
        async for chunk in await self.client.chat.completions.create(stream=True, **asked):
            state.handle_chunk(chunk)
        self.on_answer(state.current_completion_snapshot)
        return state.current_completion_snapshot


class Tidy(Agent):
    """Strips white space, and prints the arguments of calls in its own way."""

    def remember(self, message: ChatCompletionMessage) -> None:
        super().remember(message)
        kept = self.messages[-1]
        if message.content is not None:
            kept["content"] = message.content.strip()
        for call in kept.get("tool_calls", ()):
            call["function"]["arguments"] = _compact(call["function"]["arguments"])


class Doubtful(Agent):
    """Asks back after an answer, and then goes on as if it had not."""

    async def solve(self, a: int, b: int) -> bool:
        right = await super().solve(a, b)
        self.tell("Are you sure?")
        await self.ask()
        self.messages.pop()
        return right


class Choosy(Agent):
    """Asks for two answers at once, and takes one that calls the tool."""

    async def ask(self) -> ChatCompletionMessage:
        completion = await self.complete(n=2, max_tokens=MAX_TOKENS)
        messages = [choice.message for choice in completion.choices]
        return next((message for message in messages if message.tool_calls), messages[0])


class Hasty(Agent):
    """Allows too few tokens at first, and asks again with more when it sees that the answer is cut off."""

    async def ask(self) -> ChatCompletionMessage:
        first = (await self.complete(max_tokens=CUT)).choices[0]
        return await super().ask() if first.finish_reason == "length" else first.message


class Forgetful(Agent):
    """Begins every question with an empty head."""

    async def solve(self, a: int, b: int) -> bool:
        beginning = len(self.messages)
        right = await super().solve(a, b)
        del self.messages[beginning:]
        return right


class Terse(Agent):
    """Drops the full stop from an answer."""

    def remember(self, message: ChatCompletionMessage) -> None:
        super().remember(message)
        if message.content is not None:
            self.messages[-1]["content"] = message.content.strip().rstrip(".")


def _compact(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), separators=(",", ":"))
    except ValueError:
        return arguments


HABITS: dict[str, type[Agent]] = {
    "plain": Agent,
    "streaming": Streaming,
    "tidy": Tidy,
    "doubtful": Doubtful,
    "choosy": Choosy,
    "hasty": Hasty,
    "forgetful": Forgetful,
    "terse": Terse,
}
