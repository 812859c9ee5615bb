"""`stenograph export --format verifiers`, read by verifiers' own class: its branches are our samples."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from stenograph.core import State
from stenograph.export.formats import verifiers
from stenograph.export.sample import samples
from tests.export.trees import FACTS, call, ids, part, turn
from tests.live.verifiers.test_verifiers import PYTHON, pytestmark

__all__ = ["pytestmark"]

TREE = [
    turn(call("a")),
    turn(call("b", "a", context=ids(7, 8)), parts=[part(1), part(2)], finish="length"),
    turn(call("c", "a"), parts=[]),
    turn(call("d", context=ids(9))),
]
FOUND = samples(msgspec.structs.replace(FACTS, reward=0.5, state=State.COMPLETED, rewards={"a": 0.25}), TREE)


def test_its_branches_are_our_samples() -> None:
    reading = subprocess.run(
        [PYTHON, Path(__file__).with_name("read_traces.py")],
        input=b"".join(verifiers.encode(FOUND)),
        capture_output=True,
        check=False,
    )
    assert reading.returncode == 0, reading.stderr.decode()
    trace = msgspec.json.decode(reading.stdout)
    assert (trace["id"], trace["reward"], trace["ok"]) == ("s", 0.5, True)
    assert trace["branches"] == [
        {
            "token_ids": sample.tokens.tolist(),
            "sampled_mask": [bool(one) for one in sample.mask],
            "logprobs": [
                logprob if one else 0.0 for logprob, one in zip(sample.logprobs.tolist(), sample.mask, strict=True)
            ],
        }
        for sample in FOUND
    ]
