"""What OpenRLHF loads by path: its own base class, with our executor behind it."""

from __future__ import annotations

from stenograph.errors import ConfigError
from stenograph.integrations.openrlhf.executor import Executor

try:
    from openrlhf.utils.agent import AgentExecutorBase
except ImportError as missing:
    wanted = "stenograph.integrations.openrlhf needs OpenRLHF and what it imports"
    raise ConfigError(f"{wanted}: pip install openrlhf ({missing})") from missing


class AgentExecutor(Executor, AgentExecutorBase):  # type: ignore[misc]  # it has no types
    """`openrlhf.utils.agent.AgentExecutorBase`, whose `execute` records. Subclasses write `run_agent`."""
