"""Teachers on real engines, beside a forward pass of the same weights in float32.

Needs `STENOGRAPH_TORCH_FOLDER`: the model that vLLM (`STENOGRAPH_VLLM_URL`) and SGLang (`STENOGRAPH_SGLANG_URL`) serve.
"""

from __future__ import annotations

import asyncio
import functools
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.engine.sglang import SglangEngine
from stenograph.engine.vllm import VllmEngine
from stenograph.render.tokenizer import Tokenizer
from stenograph.store.memory import MemoryStore
from stenograph.teacher.teachers import Teachers
from stenograph.teacher.tutor import Tutor
from tests.conftest import ROOT
from tests.live.test_examples import run
from tests.teacher.families import family
from tests.teacher.toy import readings, teacher

VLLM, SGLANG, FOLDER = (os.environ.get(f"STENOGRAPH_{name}", "") for name in ("VLLM_URL", "SGLANG_URL", "TORCH_FOLDER"))
NO_TORCH = not FOLDER or find_spec("torch") is None or find_spec("transformers") is None
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(NO_TORCH, reason="STENOGRAPH_TORCH_FOLDER names no model, or torch is not installed"),
]
LENGTHS, TOP_KS = (1, 2, 4000), (1, 5, 20)


@functools.cache
def tokenizer() -> Tokenizer:
    return load_tokenizer(load_model_files(FOLDER))


@functools.cache
def text() -> list[int]:
    """Our own documentation: words that a model of the web finds neither certain nor strange."""
    pages = "".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))
    return tokenizer().encode(pages)[: max(LENGTHS)]


@functools.cache
def network(dtype: str) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(FOLDER, dtype=getattr(torch, dtype)).eval()


@functools.cache
def truth(length: int) -> Any:
    """Row i predicts token i + 1."""
    import torch

    with torch.inference_mode():
        ids = torch.tensor([text()[:length]])
        return torch.log_softmax(network("float32")(ids).logits[0, :-1].float(), -1)


def own(dtype: str) -> Any:
    from stenograph.engine.torch import TorchEngine

    return TorchEngine(network(dtype), tokenizer(), called="smollm2")


def case(id: str, make: Any, mean: float, worst: float | None, there: bool = True) -> Any:
    missing = pytest.mark.skipif(not there, reason=f"no {id} server is named")
    return pytest.param(make, mean, worst, id=id, marks=missing)


ENGINES = [
    case("torch-float32", lambda: own("float32"), 1e-3, 1e-3),
    case("torch-bfloat16", lambda: own("bfloat16"), 0.05, None),
    case("vllm", lambda: VllmEngine(VLLM), 0.05, None, bool(VLLM)),
    case("sglang", lambda: SglangEngine(SGLANG), 0.05, None, bool(SGLANG)),
]
"""By how much a token's logprob may differ on average, and at worst. bfloat16 rounds each layer, and at single tokens
that adds up to more than its mean: that is told and not judged."""
RARER = 1.2
"""The further down a row an alternative stands, the less likely it is, and the more of its logprob is rounding."""


async def tutored(engine: Any, at_once: int = 1) -> Tutor:
    info = await engine.start()
    facts = teacher(name="real", model=info.model, top_k=1)
    return Tutor(facts, engine, info, tokenizer().vocab_size, at_once=at_once)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("make", "mean", "worst"), ENGINES)
async def test_what_it_says_is_what_the_model_says(make: Any, mean: float, worst: float | None, length: int) -> None:
    tutor = await tutored(await asyncio.to_thread(make))
    for top_k in TOP_KS:
        (rows,) = await tutor.read([np.array(text()[:length], np.int32)], top_k)
        assert not isinstance(rows, str), rows
        assert rows.token_ids.shape == (length, top_k)
        assert (rows.token_ids[0] == -1).all()
        assert rows.token_logprobs[0] == 0.0
        if length == 1:
            continue
        ids = np.array(text()[1:length])
        tokens = np.abs(rows.token_logprobs[1:] - truth(length)[np.arange(length - 1), ids].numpy())
        best = np.abs(rows.logprobs[1:] - truth(length).topk(top_k).values.numpy())
        for what, apart in (("tokens", tokens), ("best", best)):
            print(f"{length} tokens, k={top_k}, {what}: mean {apart.mean():.5f} max {apart.max():.5f}")
            assert length < 10 or apart.mean() < mean * (RARER if what == "best" else 1)
            assert worst is None or apart.max() < worst
    await tutor.close()


SESSIONS, BRANCHES, LENGTH, SHARED = 8, 8, 2000, 1500


@pytest.mark.parametrize(("make", "mean", "worst"), [engine for engine in ENGINES if engine.id in ("vllm", "sglang")])
async def test_what_the_cache_has_is_told(make: Any, mean: float, worst: float | None) -> None:
    """`STENOGRAPH_FAMILIES=8` for the full count."""
    tutor = await tutored(make(), at_once=4)
    count = int(os.environ.get("STENOGRAPH_FAMILIES", "1"))
    found = [one for place in range(count) for one in family(place, BRANCHES, LENGTH, SHARED, 49_000)]
    taught = await Teachers(MemoryStore(), [tutor], None).taught("real", readings(found))
    assert [sample.teacher_info["real"].error for sample in taught if sample.teacher_info] == [None] * len(found)
    print(f"{tutor.tokens} tokens sent, {tutor.cached_tokens} of them in its cache")
    if tutor.cached_tokens is not None:
        assert tutor.cached_tokens >= count * (BRANCHES - 1) * SHARED
    await tutor.close()


async def test_the_student_of_the_example_comes_nearer(tmp_path: Path) -> None:
    """In its short form."""
    lines = [line for line in (await run("examples/distill.py", FOLDER, "4")).splitlines() if line.startswith("step")]
    apart = [float(line.split("reverse KL ")[1].split()[0]) for line in lines]
    assert len(apart) == 5
    assert apart[-1] < apart[0]
