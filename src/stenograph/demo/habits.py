"""What agents do to their history. Each is the same agent with one habit; the record stays true under all of them."""

from __future__ import annotations

import json
import re
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
        with_usage = {"stream": True, "stream_options": {"include_usage": True}}
        async for chunk in await self.client.chat.completions.create(**self.request(), **with_usage, **options):
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
    """Asks its first question twice, and goes on with the second answer."""

    sure = False

    async def ask(self) -> ChatCompletionMessage:
        if not self.sure:
            self.sure = True
            await super().ask()
        return await super().ask()


class Choosy(Agent):
    """Asks for two answers at once, and takes one that calls the tool."""

    async def ask(self) -> ChatCompletionMessage:
        completion = await self.complete(n=2, max_tokens=MAX_TOKENS)
        messages = [choice.message for choice in completion.choices]
        return next((message for message in messages if message.tool_calls), messages[0])


class Hasty(Agent):
    """Allows its first answer too few tokens."""

    hurried = False

    async def ask(self) -> ChatCompletionMessage:
        if self.hurried:
            return await super().ask()
        self.hurried = True
        completion = await self.complete(max_tokens=CUT)
        return completion.choices[0].message


class Forgetful(Agent):
    """Begins every question with an empty head."""

    async def solve(self, a: int, b: int) -> bool:
        beginning = len(self.messages)
        right = await super().solve(a, b)
        del self.messages[beginning:]
        return right


class Terse(Agent):
    """Keeps only the last number of an answer."""

    def remember(self, message: ChatCompletionMessage) -> None:
        super().remember(message)
        numbers = re.findall(r"\d+", message.content or "")
        if numbers and not message.tool_calls:
            self.messages[-1]["content"] = f"{numbers[-1]}."


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
