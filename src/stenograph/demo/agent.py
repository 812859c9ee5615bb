"""A small agent: it answers sums, with a tool that adds.

It knows OpenAI's SDK and nothing of training. Copy it, give it any client, and it is yours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion, ChatCompletionMessage, ChatCompletionMessageToolCallUnion

SYSTEM = "Answer with the help of the function add."
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        },
    },
}
EXAMPLES = ((12, 30), (7, 25), (41, 16))
"""Worked out before the first question. The model is small: with fewer of them it never calls the tool."""
TURNS = 3
"""At a question, before the next one."""
MAX_TOKENS = 48
TEMPERATURE = 0.7


class Agent:
    """Puts questions to the model, runs the tool when it calls it, and says so when an answer is wrong."""

    def __init__(self, client: AsyncOpenAI, model: str, on_answer: Callable[[ChatCompletion], None]) -> None:
        self.client = client
        self.model = model
        self.on_answer = on_answer
        self.messages: list[Any] = [{"role": "system", "content": SYSTEM}]
        for place, (a, b) in enumerate(EXAMPLES):
            self.messages += worked_out(f"example{place}", a, b)

    async def solve(self, a: int, b: int) -> bool:
        self.tell(question(a, b))
        for _ in range(TURNS):
            message = await self.ask()
            self.remember(message)
            if message.tool_calls:
                self.messages += [result_of(call) for call in message.tool_calls]
            elif str(a + b) in re.findall(r"\d+", message.content or ""):
                return True
            else:
                self.tell(f"That is not right. {question(a, b)}")
        return False

    async def ask(self) -> ChatCompletionMessage:
        completion = await self.complete(max_tokens=MAX_TOKENS)
        return completion.choices[0].message

    async def complete(self, **options: Any) -> ChatCompletion:
        completion: ChatCompletion = await self.client.chat.completions.create(**self.request(), **options)
        self.on_answer(completion)
        return completion

    def request(self) -> dict[str, Any]:
        return {"model": self.model, "messages": self.messages, "tools": [ADD], "temperature": TEMPERATURE}

    def remember(self, message: ChatCompletionMessage) -> None:
        self.messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))

    def tell(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})


def question(a: int, b: int) -> str:
    return f"What is {a} + {b}?"


def worked_out(id: str, a: int, b: int) -> list[dict[str, Any]]:
    """What a good answer looks like, from the question to the end."""
    function = {"name": "add", "arguments": json.dumps({"a": a, "b": b})}
    return [
        {"role": "user", "content": question(a, b)},
        {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "content": str(a + b)},
        {"role": "assistant", "content": f"{a + b}."},
    ]


def result_of(call: ChatCompletionMessageToolCallUnion) -> dict[str, Any]:
    """Whatever the model made of the call, it gets an answer."""
    return {"role": "tool", "tool_call_id": call.id, "content": _added(call) or "add takes two numbers, a and b."}


def _added(call: ChatCompletionMessageToolCallUnion) -> str | None:
    if call.type != "function" or call.function.name != "add":
        return None
    try:
        arguments = json.loads(call.function.arguments)
        return str(arguments["a"] + arguments["b"])
    except (ValueError, KeyError, TypeError):
        return None
