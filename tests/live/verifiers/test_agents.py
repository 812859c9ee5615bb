"""verifiers 0.4.0's own agents and harnesses, with its train client, against a gateway: its record, ours and the
engine's are one. Engine, gateway, verifiers and each program of its harnesses are processes of their own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import httpx2
import msgspec
import pytest

from stenograph.core import Value
from stenograph.engine.script import Rule, Script
from tests.conftest import NO_TOKENIZERS, TOKENIZERS
from tests.live.consumers.installed import python, run
from tests.live.processes import engine, gateway
from tests.live.verifiers.said import logged, require_odd_spelling, said

pytestmark = pytest.mark.live
VERIFIERS = "verifiers-0.4.0"
FAMILY = TOKENIZERS / "qwen3"
"""verifiers renders it by itself."""
SCRIPT = Script(
    model="policy",
    cut=1.0,
    rules=(
        Rule(when="Thank you", say="You are welcome: take an umbrella."),
        Rule(when="And now", say="It rains still."),
        Rule(when="<tool_response>\n?It rains", say="It rains, therefore take an umbrella."),
        Rule(
            when='"name": "bash"',
            say='<tool_call>\n{"name": "bash", "arguments": {"command":  "echo It rains"}}\n</tool_call>',
        ),
        Rule(when="", say="It rains, tokenization or not."),
    ),
)
CALLS = {"single": 1, "multi": 3, "tool": 2}


class Branch(Value):
    tokens: list[int]
    sampled: list[int]
    logprobs: list[float]


class Kept(Value):
    """A trace of verifiers'."""

    kind: str
    session: str
    reward: float
    calls: int
    branches: list[Branch]


async def test_the_three_records_are_one(tmp_path: Path) -> None:
    python(VERIFIERS)  # is there
    if not FAMILY.is_dir():
        pytest.skip(NO_TOKENIZERS)
    async with (
        engine(tmp_path, "engine", FAMILY, SCRIPT) as sampling,
        gateway(sampling, FAMILY, tmp_path / "store") as url,
        httpx2.AsyncClient(base_url=url) as client,
    ):
        told = await run(VERIFIERS, Path(__file__).parent / "programs" / "agents.py", url, str(FAMILY))
        traces = msgspec.json.decode(told, type=list[Kept])
        log = sampling.logged().values()
        require_odd_spelling(FAMILY, (choice.ids for call in log for choice in call.choices))
        assert {trace.kind: trace.calls for trace in traces} == CALLS
        recorded = []
        for trace in traces:
            (sample,) = (await client.get(f"/sessions/{trace.session}/samples")).json()["samples"]
            assert trace.branches == [Branch(sample["tokens"], sample["sampled"], sample["logprobs"])]
            assert len(sample["spans"]) == trace.calls
            for span in sample["spans"]:
                start, end = span["start"], span["end"]
                recorded.append(
                    said(sample["tokens"][:start], sample["tokens"][start:end], sample["logprobs"][start:end])
                )
        assert Counter(recorded) == Counter(logged(log))
        assert {trace.reward for trace in traces} == {0.25, 1.0}
