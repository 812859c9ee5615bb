"""Agents in Python over Chat Completions, unchanged but for the base URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.agents.harness import ANSWER, TASK, Ways, documented, python_agent, rigged
from tests.stage.models import Model

pytestmark = pytest.mark.live
READ_FILE = Ways(read=lambda name: ("read_file", {"name": name}))
FINAL_ANSWER = Ways(read=READ_FILE.read, answer=lambda answer: ("final_answer", {"answer": answer}), silent=True)
BASH = Ways(
    read=lambda name: ("bash", {"command": f"cat {name}"}),
    answer=lambda answer: ("bash", {"command": f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo {answer!r}"}),
)
AGENTS = {
    "openai-agents": READ_FILE,
    "pydantic-ai": READ_FILE,
    "smolagents": FINAL_ANSWER,
    "langgraph": READ_FILE,
    "mini-swe-agent": BASH,
}
"""By its name in docs/AGENTS.md: how it is led through the task."""


@pytest.mark.parametrize("name", AGENTS)
async def test_it_does_its_task_and_the_laws_hold(said: Model, tmp_path: Path, name: str) -> None:
    async with rigged(said, tmp_path, AGENTS[name]) as rig:
        env = {"OPENAI_BASE_URL": f"{rig.root('s')}/v1", "OPENAI_API_KEY": "EMPTY"}
        output = await rig.run([*python_agent(name), TASK], env)
        assert ANSWER in output
        assert await rig.rollout("s") == documented(name), output
