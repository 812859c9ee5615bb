"""What an engine's logprobs are is asked of the engine; over vLLM's HTTP in `test_vllm.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest

from stenograph.core import Delta, Finish, Request, TopLogprob
from stenograph.engine.evidence import delta_from
from stenograph.engine.logprob_kind import PLAIN, WARM, is_probe, probe
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.errors import EngineError, EvidenceError
from tests.engine.streams import request


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["raw", "temperature", "processed"])
async def test_each_kind_is_told_apart(kind: Any, seed: int) -> None:
    engine = ScriptedEngine(Script(seed=seed, logprob_kind=kind))
    assert await probe("scripted-0", engine.generate) == kind


def reporting(plain: list[float], warm: list[float]) -> Callable[[Request], AsyncIterator[Delta]]:
    async def generate(asked: Request) -> AsyncIterator[Delta]:
        row = tuple(TopLogprob(id, logprob) for id, logprob in enumerate(warm if asked is WARM else plain))
        top = (row,) if row else None
        yield Delta(0, np.array([0], np.int32), np.array([-1], np.float32), top=top, finish=Finish("length"))

    return generate


@pytest.mark.parametrize(
    ("plain", "warm", "kind"),
    [
        ([-1.0, -1.5, -2.0, -2.5, -3.0], [-1.01, -1.49, -2.02, -2.5, -3.0], "raw"),
        ([-1.0, -1.5, -2.0, -2.5, -3.0], [-1.8, -2.05, -2.3, -2.55, -2.8], "temperature"),
        ([-1.0, -1.5, -2.0, -2.5, -3.0], [-0.6, -0.8], "processed"),
        ([-0.0, -20.0, -21.0, -22.0, -23.0], [-0.0, -20.0, -21.0, -22.0, -23.0], "raw"),
        ([-1.0, -1.5, -2.0, -2.5, -3.0], [-1.0, -1.5], "raw"),
        ([-1.0, -1.5], [-1.0, -1.5], "raw"),
        ([-1.0], [-1.02], "raw"),
        ([-1.0, -1.5, -2.0], [-0.6, -0.8], "processed"),
        ([-1.0, -1.5, -2.0], [-1.8, -2.05, -2.3], "temperature"),
    ],
)
async def test_rows_say_of_which_kind_they_are(plain: list[float], warm: list[float], kind: str) -> None:
    assert await probe("vllm-0", reporting(plain, warm)) == kind


@pytest.mark.parametrize(("plain", "warm"), [([-1.0, -1.5], [-0.6, -0.8]), ([-1.0], [-1.8])])
async def test_of_too_few_alternatives_nothing_is_guessed(plain: list[float], warm: list[float]) -> None:
    """After temperature or after truncation: both would look like that."""
    with pytest.raises(EngineError, match="cannot be found out"):
        await probe("vllm-0", reporting(plain, warm))


async def test_the_sampled_token_alone_says_nothing() -> None:
    """Another one is sampled each time, and what is told of it cannot be compared."""

    async def generate(asked: Request) -> AsyncIterator[Delta]:
        id = 7 if asked is WARM else 5
        yield delta_from(choice=0, ids=[id], logprobs=[-1.0], top=[[(id, -1.0)]])

    with pytest.raises(EngineError, match="cannot be found out"):
        await probe("vllm-0", generate)


async def test_logits_are_no_logprobs() -> None:
    with pytest.raises(EngineError, match="vllm-0 reports logprobs that sum to more than 1"):
        await probe("vllm-0", reporting([-0.1, -0.2, -0.3], [-0.1, -0.2, -0.3]))


async def test_unusable_evidence_is_named_at_the_start() -> None:
    """A vLLM with `--logprobs-mode raw_logits` reported 17.75."""

    async def generate(asked: Request) -> AsyncIterator[Delta]:
        yield delta_from(choice=0, ids=[5], logprobs=[17.75])

    with pytest.raises(EvidenceError, match=r"vllm-0 cannot be used, .* positive"):
        await probe("vllm-0", generate)


async def test_without_alternatives_nothing_can_be_said() -> None:
    with pytest.raises(EngineError, match="vllm-0 answers without the top logprobs"):
        await probe("vllm-0", reporting([], []))


def test_probes_are_known_by_their_ids() -> None:
    assert is_probe(PLAIN)
    assert is_probe(WARM)
    assert not is_probe(request())
