"""OpenRLHF: its `AgentExecutor`, to subclass. The trainer's own engine samples, on its own event loop.

from stenograph.integrations.openrlhf import AgentExecutor as Recorded

class AgentExecutor(Recorded):
    async def run_agent(self, prompt, label, session_id):
        answer = await self.client.chat.completions.create(
            model=self.model_name, messages=[{"role": "user", "content": prompt}]
        )
        return {"reward": float(answer.choices[0].message.content == label)}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stenograph.integrations.openrlhf.agent_executor import AgentExecutor

__all__ = ["AgentExecutor"]


def __getattr__(name: str) -> Any:
    """When it is asked for: the rooms beside it need no trainer."""
    if name != "AgentExecutor":
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    from stenograph.integrations.openrlhf.agent_executor import AgentExecutor

    return AgentExecutor
