"""An agent for OpenRLHF: asks, and once more where the answer is wrong. docs/from/openrlhf.md has the command.

OpenRLHF loads this file by its path and calls `AgentExecutor().execute(…)` for each rollout.
"""

from __future__ import annotations

from typing import Any

from stenograph.integrations.openrlhf import AgentExecutor as RecordedAgent

TRIES = 2


class AgentExecutor(RecordedAgent):
    extra_log_defaults = {"tries": 0.0}  # noqa: RUF012  # every log, with what a rollout logs that failed

    async def run_agent(self, prompt: str, label: str, session_id: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt}]
        for tries in range(1, TRIES + 1):
            answer = await self.client.chat.completions.create(model=self.model_name, messages=messages)
            reply = answer.choices[0].message.content or ""
            if label in reply:
                return {"reward": 1.0 / tries, "extra_logs": {"tries": tries}}
            messages += [
                {"role": "assistant", "content": reply.strip()},
                {"role": "user", "content": "That is not right. Try again."},
            ]
        return {"reward": 0.0, "extra_logs": {"tries": TRIES}}
