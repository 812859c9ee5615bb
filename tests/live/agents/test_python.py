"""Agents in Python over Chat Completions, unchanged but for the base URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.agents.harness import ANSWER, TASK, Rollout, Ways, python_agent, rigged
from tests.stage.models import Model

pytestmark = pytest.mark.live
READ_FILE = Ways(read=lambda name: ("read_file", {"name": name}))
FINAL_ANSWER = Ways(read=READ_FILE.read, answer=lambda answer: ("final_answer", {"answer": answer}), silent=True)
BASH = Ways(
    read=lambda name: ("bash", {"command": f"cat {name}"}),
    answer=lambda answer: ("bash", {"command": f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo {answer!r}"}),
)
AGENTS: dict[str, tuple[Ways, Rollout]] = {
    "openai_agents": (READ_FILE, Rollout(turns=3, samples=1)),
    "pydantic_ai_agent": (READ_FILE, Rollout(turns=3, samples=1, notes={"arguments_reformatted": 2})),
    # It tells the model in words of its own what the model has called.
    "smolagents_agent": (FINAL_ANSWER, Rollout(turns=3, samples=3, forks={"assistant_edited": 2})),
    "langgraph_agent": (READ_FILE, Rollout(turns=3, samples=1)),
    "mini_swe_agent": (BASH, Rollout(turns=3, samples=1)),
}
"""How each is led through the task, and what its rollout is."""


@pytest.mark.parametrize("name", AGENTS)
async def test_it_does_its_task_and_the_laws_hold(said: Model, tmp_path: Path, name: str) -> None:
    ways, expected = AGENTS[name]
    async with rigged(said, tmp_path, ways) as rig:
        env = {"OPENAI_BASE_URL": f"{rig.root('s')}/v1", "OPENAI_API_KEY": "EMPTY"}
        output = await rig.run([*python_agent(name), TASK], env)
        assert ANSWER in output
        assert await rig.rollout("s") == expected, output
