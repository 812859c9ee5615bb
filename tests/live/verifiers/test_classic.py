"""verifiers' classic environments, as they are: each turn extends the last, and is what the engine logged.

Engine, gateway and rollouts are a process each. What the engine samples is spelt as no tokenizer would spell it, and
its calls print their arguments as no template would: a server that renders the history anew cannot extend them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import msgspec
import pytest

from stenograph.core import Value
from stenograph.engine.log import LoggedCall
from stenograph.engine.script import Rule, Script
from tests.conftest import NO_TOKENIZERS, TOKENIZERS
from tests.live.consumers.installed import python, run
from tests.live.processes import engine, gateway
from tests.live.verifiers.said import Said, exact, logged, require_odd_spelling, said

pytestmark = pytest.mark.live
FAMILY = TOKENIZERS / "qwen2.5"
SCRIPT = Script(
    model="policy",
    cut=1.0,
    rules=(
        Rule(when="Thank you", say="You are welcome: take an umbrella."),
        Rule(when="And now", say="\nIt rains still. "),
        Rule(when="It rains in Oslo", say="It rains everywhere, therefore take an umbrella. "),
        Rule(
            when="It rains in Paris", say=' <tool_call>\n{"name":"look",  "arguments":{"city" :"Oslo"}}\n</tool_call>'
        ),
        Rule(when='"name": "look"', say='<tool_call>\n{"name":"look","arguments":{"city":  "Paris"}}\n</tool_call>'),
        Rule(when="", say="It rains, tokenization or not.\n"),
    ),
)
TURNS = {"single": 1, "multi": 3, "tool": 3}


class Step(Value):
    prompt: list[int]
    sampled: list[int]
    logprobs: list[float]

    def said(self) -> Said:
        return said(self.prompt, self.sampled, self.logprobs)


class Kept(Value):
    """What verifiers has of a rollout."""

    kind: str
    session: str
    reward: float | None
    steps: list[Step]


class Told(Value):
    rollouts: list[Kept]
    knows_too_long: bool


class Played(Value):
    told: Told
    log: list[LoggedCall]
    gateway: httpx2.AsyncClient


@pytest.fixture(params=["0.3.1", "0.1.9.post3"])
async def played(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Played]:
    name = f"verifiers-{request.param}"
    python(name)  # is there
    if not FAMILY.is_dir():
        pytest.skip(NO_TOKENIZERS)
    async with (
        engine(tmp_path, "engine", FAMILY, SCRIPT) as sampling,
        gateway(sampling, FAMILY, tmp_path / "store") as url,
        httpx2.AsyncClient(base_url=url) as client,
    ):
        told = await run(name, Path(__file__).parent / "programs" / "classic.py", url)
        yield Played(msgspec.json.decode(told, type=Told), list(sampling.logged().values()), client)


async def test_every_turn_extends_the_last_and_is_what_the_engine_logged(played: Played) -> None:
    kept = played.told.rollouts
    steps = [step for rollout in kept for step in rollout.steps]
    require_odd_spelling(FAMILY, (step.sampled for step in steps))
    assert Counter(step.said() for step in steps) == Counter(logged(played.log))
    assert Counter(rollout.kind for rollout in kept) == dict.fromkeys(TURNS, 3)
    for rollout in kept:
        assert len(rollout.steps) == TURNS[rollout.kind]
        for before, after in zip(rollout.steps, rollout.steps[1:], strict=False):
            assert after.prompt[: len(before.prompt) + len(before.sampled)] == before.prompt + before.sampled
        await require_one_branch(played.gateway, rollout)
    assert played.told.knows_too_long


async def require_one_branch(gateway: httpx2.AsyncClient, rollout: Kept) -> None:
    told = (await gateway.get(f"/sessions/{rollout.session}")).json()
    assert (told["turns"], told["branches"], told["forks"]) == (len(rollout.steps), 1, {})
    (sample,) = (await gateway.get(f"/sessions/{rollout.session}/samples")).json()["samples"]
    last = rollout.steps[-1]
    assert sample["tokens"] == last.prompt + last.sampled
    assert sample["reward"] == (None if rollout.session.startswith("alone") else rollout.reward)
    assert sum(sample["mask"]) == sum(len(step.sampled) for step in rollout.steps)
    for step in rollout.steps:
        span = slice(len(step.prompt), len(step.prompt) + len(step.sampled))
        assert sample["mask"][span] == [1] * len(step.sampled)
        assert exact(sample["logprobs"][span]) == exact(step.logprobs)
