"""Agents over Responses, unchanged but for the base URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from stenograph.core import JSON, Value
from stenograph.engine.script import Rule
from tests.live.agents.harness import ANSWER, TASK, Called, Rig, Rollout, Ways, node_agent, python_agent, rigged, saying
from tests.stage import models
from tests.stage.models import Model

pytestmark = pytest.mark.live
READ_FILE = Ways(read=lambda name: ("read_file", {"name": name}))
RUN = Ways(read=lambda name: ("exec_command", {"cmd": f"cat {name}"}))
PROVIDER = 'model_providers.gateway={{name="gateway",base_url="{url}",env_key="OPENAI_API_KEY",wire_api="responses"}}'
FREE = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
"""There is nothing to be kept from: it is in a network of its own, and in a folder of this test's."""


async def codex(rig: Rig, model: str) -> str:
    provider = PROVIDER.format(url=f"{rig.root('s')}/v1")
    options = ["-c", "model_provider=gateway", "-c", provider, "-m", model]
    return await rig.run([*node_agent("codex"), "exec", *FREE, *options, TASK], {"OPENAI_API_KEY": "EMPTY"})


@pytest.mark.parametrize("how", ["items", "previous", "stream"])
async def test_openai_agents(said: Model, tmp_path: Path, how: str) -> None:
    command = [*python_agent("openai_agents_responses"), TASK, how]
    async with rigged(said, tmp_path, READ_FILE) as rig:
        output = await rig.run(command, {"OPENAI_BASE_URL": f"{rig.root('s')}/v1", "OPENAI_API_KEY": "EMPTY"})
        assert ANSWER in output
        assert await rig.rollout("s") == Rollout(turns=3, samples=1, protocols=("responses",)), output


async def test_codex(said: Model, tmp_path: Path) -> None:
    """Left out at each turn are its web search, and its wishes for a summary and for its own metadata."""
    async with rigged(said, tmp_path, RUN) as rig:
        output = await codex(rig, "policy")
        assert ANSWER in output
        rollout = await rig.rollout("s")
    notes = {"tool_ignored": 3, "field_ignored": 6}
    assert rollout == Rollout(turns=3, samples=1, notes=notes, protocols=("responses",)), output


@pytest.fixture(scope="module")
def strict() -> Model:
    """Its template has no word for a developer, and takes one message of instructions."""
    return models.model("qwen3.5")


async def test_codex_where_the_template_would_refuse_what_it_says_as_the_developer(
    strict: Model, tmp_path: Path
) -> None:
    steps = {ANSWER: ANSWER, "second.txt": saying(strict, None, RUN.read("second.txt"))}
    steps[""] = saying(strict, None, RUN.read("first.txt"))
    ways = Ways(
        read=RUN.read, aside=tuple(Rule(when=when, say=f"Hm.\n</think>\n\n{say}") for when, say in steps.items())
    )
    async with rigged(strict, tmp_path, ways) as rig:
        output = await codex(rig, "policy")
        assert ANSWER in output
        rollout = await rig.rollout("s")
    assert (rollout.turns, rollout.samples, rollout.forks) == (3, 1, {}), output


class Patch(Value):
    arguments: dict[str, JSON]
    then: str
    """What its result says, as a regular expression."""


SLIP = Patch({"patch": "*** Begin Patch"}, "patch")
ADD = Patch({"input": "*** Begin Patch\n*** Add File: word.txt\n+marmalade\n*** End Patch\n"}, "A word.txt")


async def test_codex_with_a_tool_that_takes_any_text(said: Model, tmp_path: Path) -> None:
    """To a model that it knows, Codex gives `apply_patch` as a custom tool. The model gets its argument wrong first:
    that, too, comes back as it was."""
    ways = Ways(
        read=RUN.read,
        aside=(
            Rule(when=ADD.then, say=saying(said, f"The word is {ANSWER}.")),
            Rule(when="verification failed", say=saying(said, None, ("apply_patch", ADD.arguments))),
            Rule(when=f"The word is {ANSWER}", say=saying(said, "Noted.", ("apply_patch", SLIP.arguments))),
        ),
    )
    async with rigged(said, tmp_path, ways) as rig:
        output = await codex(rig, "gpt-5.5")
        assert (tmp_path / "work" / "word.txt").read_text() == f"{ANSWER}\n", output
        rollout = await rig.rollout("s")
    assert (rollout.turns, rollout.samples, rollout.forks) == (5, 1, {}), output


@pytest.fixture(scope="module")
def thinking() -> Model:
    return models.model("qwen3")


async def test_codex_sends_reasoning_back(thinking: Model, tmp_path: Path) -> None:
    """Nothing has to be restored from the record."""
    thought = "<think>\nThere is more to it.\n</think>\n\n"
    steps = {ANSWER: ANSWER, "second.txt": saying(thinking, None, RUN.read("second.txt"))}
    steps[TASK] = saying(thinking, None, RUN.read("first.txt"))
    ways = Ways(read=RUN.read, aside=tuple(Rule(when=when, say=thought + say) for when, say in steps.items()))
    async with rigged(thinking, tmp_path, ways) as rig:
        output = await codex(rig, "policy")
        assert ANSWER in output
        rollout = await rig.rollout("s")
    assert (rollout.turns, rollout.samples, rollout.forks) == (3, 1, {}), output
    assert "reasoning_restored" not in rollout.notes


async def test_codex_with_another_agent(said: Model, tmp_path: Path) -> None:
    """The tools of a namespace are the agent's own: Codex runs a second agent, in the same session, as a branch."""
    spawn: Called = ("multi_agent_v1__spawn_agent", {"message": "What does second.txt say?"})
    wait: Called = ("multi_agent_v1__wait_agent", {"targets": ["0"]})
    ways = Ways(
        read=RUN.read,
        aside=(
            Rule(when="The word is marmalade", say=saying(said, f"The word is {ANSWER}.")),
            Rule(when="What does second.txt say", say=saying(said, None, RUN.read("second.txt"))),
            Rule(when="agent_id", say=saying(said, None, wait)),
            Rule(when="Look into second.txt", say=saying(said, None, spawn)),
        ),
    )
    async with rigged(said, tmp_path, ways) as rig:
        output = await codex(rig, "policy")
        rollout = await rig.rollout("s")
    assert "SpawnAgent" in output
    assert ANSWER in output
    assert (rollout.samples, sum(rollout.forks.values())) == (2, 1), output
