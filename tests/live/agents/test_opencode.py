"""opencode, headless, over Chat Completions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stenograph.engine.script import Rule
from tests.live.agents.harness import ANSWER, TASK, Ways, documented, node_agent, rigged
from tests.stage.models import Model

pytestmark = pytest.mark.live


async def test_it_does_its_task_and_the_laws_hold(said: Model, tmp_path: Path) -> None:
    work = tmp_path / "work"
    ways = Ways(
        read=lambda name: ("read", {"filePath": str(work / name)}),
        aside=(Rule(when="Generate a title", say="Looking for a word"),),
    )
    async with rigged(said, tmp_path, ways) as rig:
        options = {"baseURL": f"{rig.root('s')}/v1", "apiKey": "EMPTY"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"policy": {}}}
        (work / "opencode.json").write_text(json.dumps({"provider": {"st": provider}}))
        output = await rig.run([*node_agent("opencode"), "run", "-m", "st/policy", TASK], {})
        assert ANSWER in output
        assert await rig.rollout("s") == documented("opencode"), output
