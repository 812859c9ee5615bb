"""A rollout by verifiers' own train client, in its own environment: `python rollout.py BASE_URL TOKENIZER`.

It renders prompts itself, sends ids to `/inference/v1/generate`, and keeps its own record. That is printed, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from renderers import Qwen3RendererConfig
from verifiers.v1.clients.train import TrainClient
from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.configs.client import TrainClientConfig
from verifiers.v1.dialects import ChatDialect
from verifiers.v1.graph import prepare_turn
from verifiers.v1.task import TaskData
from verifiers.v1.trace import AgentInfo, Branch, Trace, TraceTask
from verifiers.v1.types import SamplingConfig

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "looks out of a window",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
QUESTIONS = ("What is it like in Paris?", "And now?", "Thank you.")


class Rollout:
    def __init__(self, base_url: str, tokenizer: str) -> None:
        renderer = Qwen3RendererConfig()
        self._client = TrainClient(
            TrainClientConfig(base_url=base_url, renderer=renderer, renderer_model_name=tokenizer)
        )
        self._sampling = SamplingConfig(temperature=0.7, max_tokens=200)
        self._dialect = ChatDialect()
        task = TraceTask(type="Task", data=TaskData(idx=0, prompt="look"))
        self.trace = Trace(task=task, agent=AgentInfo(config=AgentConfig()))
        self.messages: list[dict[str, Any]] = []

    async def play(self) -> None:
        for question in QUESTIONS:
            self.messages.append({"role": "user", "content": question})
            while calls := await self._turn():
                for call in calls:
                    self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": "It rains."})
        await self._client.close()

    async def _turn(self) -> list[dict[str, Any]]:
        body = {"model": "policy", "messages": self.messages, "tools": [LOOK]}
        asked = self._dialect.parse_request(body)
        turn = prepare_turn(self.trace, asked.messages, asked.tools)
        response = await self._client.get_response(
            self._dialect, body, self._sampling, session_id=self.trace.id, turn=turn
        )
        turn.commit(response)
        reply = response.raw["choices"][0]["message"]
        self.messages.append(reply)
        calls: list[dict[str, Any]] = reply.get("tool_calls") or []
        return calls

    def told(self) -> dict[str, Any]:
        return {
            "session": self.trace.id,
            "branches": [_columns(branch) for branch in self.trace.branches],
            "messages": self.messages,
        }


def _columns(branch: Branch) -> dict[str, list[Any]]:
    sampled = [int(mark) for mark in branch.sampled_mask]
    return {"tokens": branch.token_ids, "sampled": sampled, "logprobs": branch.logprobs}


if __name__ == "__main__":
    rollout = Rollout(*sys.argv[1:])
    asyncio.run(rollout.play())
    print(json.dumps(rollout.told()))
