"""The agents of the cases, as OpenRLHF loads them: by path. A prompt's label says which case it is."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from openai import APIStatusError

from stenograph.integrations.openrlhf import AgentExecutor as Recorded
from stenograph.integrations.openrlhf.episode import SessionId

Messages = list[dict[str, Any]]
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "looks out of a window",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
PARIS = {"role": "user", "content": "And in Paris?"}


@contextmanager
def refused(code: str | None) -> Iterator[None]:
    try:
        yield
    except APIStatusError as error:
        if error.code != code:
            raise
    else:
        raise AssertionError(f"nothing was refused with {code}")


class AgentExecutor(Recorded):
    gateway_settings = {"grace": 60.0}  # noqa: RUF012  # Ray unpickles tokenizers meanwhile: this loop may stand still
    extra_log_defaults = {"calls": 0.0}  # noqa: RUF012  # as a user writes it

    def __init__(self) -> None:
        self.played: Counter[str] = Counter()

    async def run_agent(self, prompt: str, label: str, session_id: SessionId) -> dict[str, Any]:
        self.played[label] += 1
        number = self.played[label]
        calls = await getattr(self, label)([{"role": "user", "content": prompt}], session_id)
        return {"reward": float(number), "scores": 1.0, "extra_logs": {"calls": calls, "undeclared": 3}}

    async def ask(self, messages: Messages, **fields: Any) -> str:
        answer = await self.client.chat.completions.create(model=self.model_name, messages=messages, **fields)
        return str(answer.choices[0].message.content)

    async def goes_on(self, messages: Messages, reply: str, **fields: Any) -> str:
        return await self.ask([*messages, {"role": "assistant", "content": reply}, PARIS], **fields)

    async def case_01(self, messages: Messages, session_id: SessionId) -> int:
        """Two clean turns, with all that the upstream example sends."""
        fields = {
            "max_tokens": self.sampling_params.max_tokens,
            "temperature": self.sampling_params.temperature,
            "top_p": self.sampling_params.top_p,
            "logprobs": True,
            "top_logprobs": 1,
            "extra_body": {"session_id": session_id},
        }
        await self.goes_on(messages, await self.ask(messages, **fields), **fields)
        return 2

    async def case_02(self, messages: Messages, session_id: SessionId) -> int:
        """The engine's ids are not those that its words would be encoded as."""
        await self.goes_on(messages, await self.ask(messages))
        return 2

    async def case_03(self, messages: Messages, session_id: SessionId) -> int:
        """The agent strips the newline."""
        reply = await self.ask(messages)
        assert reply != reply.strip()
        await self.goes_on(messages, reply.strip())
        return 2

    async def case_04(self, messages: Messages, session_id: SessionId) -> int:
        """The agent leaves out what was thought."""
        answer = await self.client.chat.completions.create(model=self.model_name, messages=messages, tools=[LOOK])
        message = answer.choices[0].message
        assert message.reasoning_content
        call = message.tool_calls[0]
        said = {"role": "assistant", "content": message.content or "", "tool_calls": [call.model_dump()]}
        found = {"role": "tool", "tool_call_id": call.id, "content": "It rains."}
        await self.ask([*messages, said, found], tools=[LOOK])
        return 2

    async def case_05(self, messages: Messages, session_id: SessionId) -> int:
        """The reply ends in the middle of an emoji."""
        reply = await self.ask(messages, max_tokens=3)
        await self.goes_on(messages, reply)
        return 2

    async def case_06(self, messages: Messages, session_id: SessionId) -> int:
        """A summariser with a system prompt of its own, in the same session."""
        reply = await self.ask(messages)
        await self.ask([{"role": "system", "content": "Summarise."}, {"role": "user", "content": reply}])
        await self.goes_on(messages, reply)
        return 3

    async def case_07(self, messages: Messages, session_id: SessionId) -> int:
        """Two calls at once."""
        reply = await self.ask(messages)
        await asyncio.gather(self.goes_on(messages, reply), self.goes_on(messages, reply))
        return 3

    async def case_08(self, messages: Messages, session_id: SessionId) -> int:
        """No call names the session."""
        await self.goes_on(messages, await self.ask(messages))
        return 2

    async def case_09(self, messages: Messages, session_id: SessionId) -> int:
        """No call asks for logprobs."""
        reply = await self.ask(messages, logprobs=False)
        await self.goes_on(messages, reply, logprobs=False)
        return 2

    async def case_10(self, messages: Messages, session_id: SessionId) -> int:
        """Streams."""
        chunks = await self.client.chat.completions.create(model=self.model_name, messages=messages, stream=True)
        reply = "".join([chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices])
        assert reply
        await self.goes_on(messages, reply)
        return 2

    async def case_11(self, messages: Messages, session_id: SessionId) -> int:
        """Too long, trimmed, asked again."""
        reply = await self.ask(messages)
        with refused("context_length_exceeded"):
            await self.goes_on(messages, reply + "word " * self.max_length)
        await self.goes_on(messages, reply)
        return 2

    async def case_12(self, messages: Messages, session_id: SessionId) -> int:
        """The engine fails; the agent says something else."""
        reply = await self.ask(messages)
        once = self.client.with_options(max_retries=0)
        said = {"role": "assistant", "content": reply}
        fails = {"role": "user", "content": f"[the engine fails] {session_id}"}
        with refused(None):
            await once.chat.completions.create(model=self.model_name, messages=[*messages, said, fails])
        await self.goes_on(messages, reply)
        return 2

    async def case_13(self, messages: Messages, session_id: SessionId) -> int:
        """The client gives up waiting and asks again."""
        impatient = self.client.with_options(timeout=0.1, max_retries=20)
        answer = await impatient.chat.completions.create(model=self.model_name, messages=messages)
        await self.goes_on(messages, answer.choices[0].message.content)
        return 2

    async def case_14(self, messages: Messages, session_id: SessionId) -> int:
        """Tools, three answers of which the third goes on, a temperature of its own, and a stop string."""
        fields = {"model": self.model_name, "tools": [LOOK], "temperature": 0.25}
        answer = await self.client.chat.completions.create(messages=messages, n=3, **fields)
        assert len(answer.choices) == 3
        reply = await self.goes_on(messages, answer.choices[2].message.content, tools=[LOOK], stop=["Paris"])
        assert reply == "It rains in "
        return 2

    async def case_15(self, messages: Messages, session_id: SessionId) -> int:
        """A call without content, and the tool's result."""
        answer = await self.client.chat.completions.create(model=self.model_name, messages=messages, tools=[LOOK])
        (call,) = answer.choices[0].message.tool_calls
        called = {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]}
        result = {"role": "tool", "tool_call_id": call.id, "content": "It rains."}
        await self.ask([*messages, called, result], tools=[LOOK])
        return 2

    async def case_16(self, messages: Messages, session_id: SessionId) -> int:
        """A program without our client: HTTP, from a thread, while two other executors play."""
        await asyncio.to_thread(_over_http, session_id, messages)
        return 1

    async def case_17(self, messages: Messages, session_id: SessionId) -> int:
        """One of four raises."""
        if self.played["case_17"] == 2:  # nothing is awaited before, so one of the four
            raise KeyError("the environment is broken")
        await self.ask(messages)
        return 1

    async def case_18(self, messages: Messages, session_id: SessionId) -> int:
        """`data.apply_chat_template` is on."""
        await self.ask(messages)
        return 1

    async def case_19(self, messages: Messages, session_id: SessionId) -> int:
        """The first prompt is too long."""
        await self.ask(messages)
        return 1

    async def silent(self, messages: Messages, session_id: SessionId) -> int:
        return 0

    async def pictured(self, messages: Messages, session_id: SessionId) -> int:
        raise AssertionError("images are refused before the agent is asked")


def _over_http(session_id: SessionId, messages: Messages) -> None:
    body = json.dumps({"model": "m", "messages": messages}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {session_id.api_key}"}
    request = urllib.request.Request(f"{session_id.base_url}/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["x-session-id"] == session_id
