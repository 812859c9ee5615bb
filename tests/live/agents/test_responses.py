"""Agents over Responses, unchanged but for the base URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.agents.harness import ANSWER, TASK, Rollout, Ways, node_agent, python_agent, rigged
from tests.stage.models import Model

pytestmark = pytest.mark.live
READ_FILE = Ways(read=lambda name: ("read_file", {"name": name}))
RUN = Ways(read=lambda name: ("exec_command", {"cmd": f"cat {name}"}))
PROVIDER = 'model_providers.gateway={{name="gateway",base_url="{url}",env_key="OPENAI_API_KEY",wire_api="responses"}}'


@pytest.mark.parametrize("how", ["items", "previous", "stream"])
async def test_openai_agents(said: Model, tmp_path: Path, how: str) -> None:
    command = [*python_agent("openai_agents_responses"), TASK, how]
    async with rigged(said, tmp_path, READ_FILE) as rig:
        output = await rig.run(command, {"OPENAI_BASE_URL": f"{rig.root('s')}/v1", "OPENAI_API_KEY": "EMPTY"})
        assert ANSWER in output
        assert await rig.rollout("s") == Rollout(turns=3, samples=1, protocols=("responses",)), output


async def test_codex(said: Model, tmp_path: Path) -> None:
    async with rigged(said, tmp_path, RUN) as rig:
        provider = PROVIDER.format(url=f"{rig.root('s')}/v1")
        command = [
            "exec",
            "--skip-git-repo-check",
            "-c",
            "model_provider=gateway",
            "-c",
            provider,
            "-m",
            "policy",
            TASK,
        ]
        output = await rig.run([*node_agent("codex"), *command], {"OPENAI_API_KEY": "EMPTY"})
        assert ANSWER in output
        rollout = await rig.rollout("s")
    ignored = {"tool_ignored": 3, "field_ignored": 6}
    assert rollout == Rollout(turns=3, samples=1, notes=ignored, protocols=("responses",)), output
