"""verifiers' classic environments over Atropos' managed client, in one process with the gateway: tokens are there, and
nobody asked for them; each turn extends the last; and what is trained is what the engine logged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stenograph.core import Value
from stenograph.engine.log import LoggedCall
from tests.conftest import NO_TOKENIZERS
from tests.live.consumers.installed import run
from tests.live.verifiers.said import logged, require_odd_spelling, said
from tests.live.verifiers.test_classic import FAMILY, SCRIPT, TURNS, Step

pytestmark = pytest.mark.live


class Kept(Value):
    kind: str
    steps: list[Step]
    nodes: list[dict[str, Any]]


@pytest.mark.parametrize("version", ["0.3.1", "0.1.9.post3"])
async def test_a_managed_client_is_all_that_verifiers_needs(version: str, tmp_path: Path) -> None:
    if not FAMILY.is_dir():
        pytest.skip(NO_TOKENIZERS)
    script, log = tmp_path / "script.json", tmp_path / "log"
    script.write_bytes(msgspec.json.encode(SCRIPT))
    program = Path(__file__).parent / "programs" / "managed.py"
    told = await run(f"managed-{version}", program, str(FAMILY), str(script), str(log))
    rollouts = msgspec.json.decode(told.splitlines()[-1], type=list[Kept])
    calls = [msgspec.json.decode(line, type=LoggedCall) for line in log.read_bytes().splitlines()]
    steps = [step for rollout in rollouts for step in rollout.steps]
    require_odd_spelling(FAMILY, (step.sampled for step in steps))
    assert Counter(step.said() for step in steps) == Counter(logged(calls))
    assert {rollout.kind: len(rollout.steps) for rollout in rollouts} == TURNS
    for rollout in rollouts:
        [node] = rollout.nodes
        last = rollout.steps[-1]
        assert node["tokens"] == last.prompt + last.sampled
        trained = [id for id in node["masked_tokens"] if id != -100]
        assert trained == [id for step in rollout.steps for id in step.sampled]
        told_logprobs = [logprob for logprob in node["logprobs"] if logprob != 1.0]
        assert said((), (), told_logprobs) == said((), (), [one for step in rollout.steps for one in step.logprobs])
