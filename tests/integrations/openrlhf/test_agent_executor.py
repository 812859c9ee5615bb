"""What a user's file subclasses, with no more of OpenRLHF than the class that ours stands on."""

from __future__ import annotations

import re
import subprocess
import sys
from abc import ABC, abstractmethod
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.integrations.openrlhf.trainer import LlmEngine, rollouts

PAGE = ROOT / "docs" / "from" / "openrlhf.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
OURS = "stenograph.integrations.openrlhf.agent_executor"


class AgentExecutorBase(ABC):
    @abstractmethod
    async def execute(self, *arguments: Any, **named: Any) -> Any: ...


@pytest.fixture(autouse=True)
def upstream(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {name: ModuleType(name) for name in ("openrlhf", "openrlhf.utils", "openrlhf.utils.agent")}
    vars(modules["openrlhf.utils.agent"])["AgentExecutorBase"] = AgentExecutorBase
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, OURS, raising=False)


def loaded(path: Path) -> Any:
    """As OpenRLHF's rollout actor does it."""
    spec = spec_from_file_location("agent_module", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert issubclass(module.AgentExecutor, AgentExecutorBase)
    return module.AgentExecutor()


async def played(executor: Any) -> dict[str, Any]:
    (told,) = await rollouts(executor, LlmEngine(), label="")
    for opened in executor._places()._open.values():
        await (await opened).close()
    return told


async def test_the_pages_before_runs_with_the_import_of_its_after(tmp_path: Path) -> None:
    before, after = BLOCK.findall(PAGE.read_text())
    first, rest = before.split("\n", 1)
    assert first.startswith("from agent_func_openai_server_executor import")
    agent = tmp_path / "agent.py"
    agent.write_text(after + rest)
    told = await played(loaded(agent))
    assert (told["reward"], len(told["action_ranges"])) == (1.0, 1)


async def test_the_example_runs() -> None:
    told = await played(loaded(ROOT / "examples" / "openrlhf" / "agent.py"))
    assert (told["reward"], told["extra_logs"]["tries"]) == (1.0, 1.0)


def test_an_agent_has_to_say_what_it_does() -> None:
    from stenograph.integrations.openrlhf import AgentExecutor

    class Silent(AgentExecutor): ...

    with pytest.raises(TypeError, match="run_agent"):
        Silent()


def test_without_openrlhf_the_error_says_so() -> None:
    code = "from stenograph.integrations.openrlhf import AgentExecutor"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ConfigError: stenograph.integrations.openrlhf needs OpenRLHF" in run.stderr
