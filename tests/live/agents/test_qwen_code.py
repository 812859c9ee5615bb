"""Qwen Code, headless, over Chat Completions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.agents.harness import ANSWER, TASK, Ways, documented, node_agent, rigged
from tests.stage.models import Model

pytestmark = pytest.mark.live


async def test_it_does_its_task_and_the_laws_hold(said: Model, tmp_path: Path) -> None:
    work = tmp_path / "work"
    async with rigged(said, tmp_path, Ways(read=lambda name: ("read_file", {"file_path": str(work / name)}))) as rig:
        env = {
            "OPENAI_BASE_URL": f"{rig.root('s')}/v1",
            "OPENAI_API_KEY": "EMPTY",
            "OPENAI_MODEL": "policy",
        }
        output = await rig.run([*node_agent("qwen"), "--auth-type", "openai", "--yolo", "-p", TASK], env)
        assert ANSWER in output
        assert await rig.rollout("s") == documented("qwen-code"), output
