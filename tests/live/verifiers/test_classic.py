"""verifiers' classic environments, as they are, against a gateway: each turn extends the last, and is what the engine logged.

Engine, gateway and rollouts are a process each. What the engine samples is spelt as no tokenizer would spell it, and its
calls print their arguments as no template would: a server that renders the history anew cannot extend them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import TypeAlias

import httpx2
import msgspec
import numpy as np
import pytest

from stenograph.core import Value
from stenograph.engine.log import LoggedCall
from stenograph.engine.script import Rule, Script
from stenograph.render.tokenizer import Tokenizer
from tests.conftest import NO_TOKENIZERS, TOKENIZERS
from tests.live.consumers.installed import python, run
from tests.live.processes import engine, gateway

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
Said: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], bytes]
"""A call: its prompt, what was sampled, and at which logprobs."""


class Step(Value):
    prompt: list[int]
    sampled: list[int]
    logprobs: list[float]

    def said(self) -> Said:
        return tuple(self.prompt), tuple(self.sampled), _bytes(self.logprobs)


class Kept(Value):
    """What verifiers has of a rollout."""

    kind: str
    session: str
    reward: float | None
    steps: list[Step]


class Played(Value):
    kept: list[Kept]
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
        told = await run(name, Path(__file__).with_name("classic.py"), url)
        yield Played(msgspec.json.decode(told, type=list[Kept]), list(sampling.logged().values()), client)


async def test_every_turn_extends_the_last_and_is_what_the_engine_logged(played: Played) -> None:
    assert Counter(rollout.kind for rollout in played.kept) == dict.fromkeys(TURNS, 3)
    assert all(len(rollout.steps) == TURNS[rollout.kind] for rollout in played.kept)
    assert Counter(step.said() for rollout in played.kept for step in rollout.steps) == Counter(logged(played.log))
    for rollout in played.kept:
        for before, after in zip(rollout.steps, rollout.steps[1:], strict=False):
            assert after.prompt[: len(before.prompt) + len(before.sampled)] == before.prompt + before.sampled
    spelt = Tokenizer((FAMILY / "tokenizer.json").read_text())
    assert all(
        spelt.encode(spelt.decode(step.sampled)) != step.sampled for rollout in played.kept for step in rollout.steps
    )
    for rollout in played.kept:
        await require_one_branch(played.gateway, rollout)


async def require_one_branch(gateway: httpx2.AsyncClient, rollout: Kept) -> None:
    told = (await gateway.get(f"/sessions/{rollout.session}")).json()
    assert (told["turns"], told["branches"], told["forks"]) == (len(rollout.steps), 1, {})
    (sample,) = (await gateway.get(f"/sessions/{rollout.session}/samples")).json()["samples"]
    last = rollout.steps[-1]
    assert sample["tokens"] == last.prompt + last.sampled
    assert sample["reward"] == rollout.reward
    for step in rollout.steps:
        span = slice(len(step.prompt), len(step.prompt) + len(step.sampled))
        assert sample["mask"][span] == [1] * len(step.sampled)
        assert _bytes(sample["logprobs"][span]) == _bytes(step.logprobs)
    assert sum(sample["mask"]) == sum(len(step.sampled) for step in rollout.steps)


def logged(calls: Iterable[LoggedCall]) -> Iterable[Said]:
    for call in calls:
        (choice,) = call.choices
        yield tuple(call.prompt), tuple(choice.ids), _bytes(choice.logprobs)


def _bytes(logprobs: Iterable[float]) -> bytes:
    return np.array(list(logprobs), np.float32).tobytes()
