"""Agents in Python over Chat Completions, unchanged but for the base URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.agents.harness import ANSWER, TASK, Rollout, Ways, python_agent, rigged
from tests.stage.models import Model

pytestmark = pytest.mark.live
READ_FILE = Ways(read=lambda name: ("read_file", {"name": name}))
BASH = Ways(
    read=lambda name: ("bash", {"command": f"cat {name}"}),
    answer=lambda answer: ("bash", {"command": f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo {answer!r}"}),
)
AGENTS: dict[str, tuple[Ways, dict[str, int]]] = {
    "openai_agents": (READ_FILE, {}),
    "pydantic_ai_agent": (READ_FILE, {"arguments_reformatted": 2}),
    "langgraph_agent": (READ_FILE, {}),
    "mini_swe_agent": (BASH, {}),
}
"""How each is led through the task, and what of it the record notes."""


@pytest.mark.parametrize("name", AGENTS)
async def test_a_rollout_is_one_sample(said: Model, tmp_path: Path, name: str) -> None:
    ways, notes = AGENTS[name]
    async with rigged(said, tmp_path, ways) as rig:
        env = {"OPENAI_BASE_URL": f"{rig.root('s')}/v1", "OPENAI_API_KEY": "EMPTY"}
        output = await rig.run([*python_agent(name), TASK], env)
        assert ANSWER in output
        assert await rig.rollout("s") == Rollout(turns=3, samples=1, notes=notes), output
