"""Each format, loaded by the class of its consumer that it is for: what it reads are the samples that went in.

None of them is in the development set: each wants versions of its own of much else, and lives in an environment of its
own. What the formats have to look like is held by `tests/export/formats` on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from stenograph.core import Sample, SessionFacts, State, Turn
from stenograph.export.formats.table import FORMATS
from stenograph.export.rollouts import advantages, groups, rollouts, total_reward
from stenograph.export.sample import samples
from tests.export.formats.reading import of_sample
from tests.export.trees import call, ids, part, turn
from tests.live.consumers.installed import run

pytestmark = pytest.mark.live
PROGRAMS = Path(__file__).parent / "programs"
INSTALLED = {
    "openrlhf": "openrlhf",
    "atropos": "atropos",
    "verifiers": "verifiers-0.4.0",
    "verl": "verl",
    "trl": "trl",
    "tinker": "tinker",
    "skyrl": "skyrl",
}
"""By format, where its consumer is."""
ELSEWHERE = ("prime-rl", "slime")
"""Consumers that PyPI does not have (its `slime` is a package of statistics), so that nobody can load them here."""

TURNS = [turn(call("a")), turn(call("b", "a", context=ids(7, 8)), parts=[part(1), part(2)], finish="length")]
BRANCHES = [*TURNS, turn(call("c", "a"), parts=[part(3, 200)]), turn(call("d", context=ids(9)))]


def session(id: str, group: str | None, reward: float, tree: Sequence[Turn] = TURNS) -> list[Sample]:
    facts = SessionFacts(
        id=id, key_hash="", created_at=1.0, touched_at=2.0, group=group, group_size=2 if group else None
    )
    of_turns = {"a": 0.25} if reward == 1.0 else {}
    return samples(msgspec.structs.replace(facts, reward=reward, state=State.COMPLETED, rewards=of_turns), tree)


PLAIN = [
    *session("s0", "g", 1.0),
    *session("s1", "g", 0.0, TURNS[:1]),
    *session("s2", None, -0.5),
]
BRANCHED = [*session("s0", "g", 1.0, BRANCHES), *session("s1", "g", 0.0), *session("s2", None, -0.5, BRANCHES)]


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("jsonl", "parquet")])
async def test_its_consumer_reads_what_was_written(name: str) -> None:
    if name in ELSEWHERE:
        pytest.skip(f"{name} is not on PyPI (listed, reviewed)")
    wanted = BRANCHED if FORMATS[name].branches else PLAIN
    told = await run(INSTALLED[name], PROGRAMS / f"{name}.py", said=b"".join(FORMATS[name].encode(wanted)))
    read = msgspec.json.decode(told)
    assert len(read) == len(wanted)
    rewards = rewards_in(name, wanted)
    for row, sample in zip(read, wanted, strict=True):
        expected = of_sample(sample)
        assert (row["tokens"], row["mask"]) == (expected.tokens, expected.mask)
        assert np.array_equal(np.array(row["logprobs"], np.float32), np.array(expected.logprobs, np.float32))
        assert row["reward"] == pytest.approx(rewards[sample.session_id])
        if "turn_rewards" in row:
            assert row["turn_rewards"] == list(sample.rewards.values())


def rewards_in(name: str, found: Sequence[Sample]) -> Mapping[str, float | None]:
    """By session."""
    if name == "tinker":
        return {
            rollout[0].session_id: advantage
            for group in groups(found)
            for rollout, advantage in zip(group, advantages(group, name), strict=True)
        }
    if name == "skyrl":
        return {rollout[0].session_id: total_reward(rollout, name) for rollout in rollouts(found)}
    return {sample.session_id: sample.reward for sample in found}
