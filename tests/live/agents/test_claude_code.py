"""Claude Code over Anthropic Messages, unchanged but for the base URL."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stenograph.core import NoteKind
from stenograph.engine.script import Rule
from tests.live.agents.harness import (
    ANSWER,
    FILES,
    TASK,
    Called,
    Rig,
    Rollout,
    Ways,
    documented,
    node_agent,
    rigged,
    saying,
)
from tests.stage import models
from tests.stage.models import Model

pytestmark = pytest.mark.live
IGNORED = {"context_management", "system.x-anthropic-billing-header"}
"""Of every call: what only Anthropic's servers do."""


def bash(file: str) -> Called:
    return "Bash", {"command": f"cat {file}", "description": "Reads a file"}


@pytest.fixture(scope="module")
def thinker() -> Model:
    return models.model("qwen3")


@pytest.fixture(scope="module")
def strict() -> Model:
    """Its template takes instructions at the beginning only."""
    return models.model("qwen3.5")


def thinking(thinker: Model) -> Ways:
    """A model that thinks, looks for a tool whose definition is not in the prompt, and calls two at once."""

    def rule(when: str, thought: str, content: str | None, *calls: Called) -> Rule:
        return Rule(when=re.escape(when), say=f"<think>\n{thought}\n</think>\n\n{saying(thinker, content, *calls)}")

    steps = (
        rule(FILES["second.txt"].strip(), "There it is.", f"The word is {ANSWER}. \n"),
        rule('{"name":"TaskStop"', "No use.", "Both, then.\n\n", bash("first.txt"), bash("second.txt")),
        rule("", "Is there a better tool?", None, ("ToolSearch", {"query": "select:TaskStop", "max_results": 1})),
    )
    return Ways(read=bash, aside=steps)


def thinking_already(strict: Model) -> Ways:
    """Its prompt has opened the reasoning."""

    def rule(when: str, content: str | None, *calls: Called) -> Rule:
        return Rule(when=re.escape(when), say=f"Hm.\n</think>\n\n{saying(strict, content, *calls)}")

    steps = (
        rule(FILES["second.txt"].strip(), f"The word is {ANSWER}."),
        rule(FILES["first.txt"].strip(), None, bash("second.txt")),
        rule("", None, bash("first.txt")),
    )
    return Ways(read=bash, aside=steps)


async def run(rig: Rig) -> Rollout:
    command = [*node_agent("claude"), "-p", TASK, "--model", "policy", "--allowedTools", "Bash"]
    env = {
        "ANTHROPIC_BASE_URL": rig.root("s"),
        "ANTHROPIC_API_KEY": "sk-test",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }
    output = await rig.run(command, env)
    assert ANSWER in output
    return await rig.rollout("s")


def ignored(rig: Rig) -> set[str]:
    calls = rig.stage.tree("s").calls.values()
    return {note.detail for call in calls for note in call.notes if note.kind is NoteKind.FIELD_IGNORED}


async def test_a_rollout_is_one_sample(said: Model, tmp_path: Path) -> None:
    async with rigged(said, tmp_path, Ways(read=bash)) as rig:
        assert await run(rig) == documented("claude-code")
        assert ignored(rig) == IGNORED


async def test_thinking_that_it_does_not_show_and_tools_that_it_finds_are_one_sample_too(
    thinker: Model, tmp_path: Path
) -> None:
    async with rigged(thinker, tmp_path, thinking(thinker)) as rig:
        rollout = await run(rig)
        notes = {"field_ignored": 6}
        assert rollout == Rollout(turns=3, samples=1, notes=notes, protocols=("messages",))
        replies = [turn.reply for turn in rig.stage.tree("s").turns.values()]
        assert [reply.reasoning for reply in replies] == ["Is there a better tool?", "No use.", "There it is."]
        assert [len(reply.tool_calls) for reply in replies] == [1, 2, 0]


async def test_where_the_template_takes_no_instructions_in_between_it_puts_them_elsewhere(
    strict: Model, tmp_path: Path
) -> None:
    async with rigged(strict, tmp_path, thinking_already(strict)) as rig:
        rollout = await run(rig)
        assert (rollout.turns, rollout.samples, rollout.forks) == (3, 1, {})
        attempts = (await rig.stage.get("/sessions/s"))["attempts"]
        assert attempts["refused"] == 1
