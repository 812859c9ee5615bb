"""A transformers model as a teacher: what branches share is computed once, and rows are those of a forward pass."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from stenograph.store.memory import MemoryStore
from stenograph.teacher.teachers import Teachers
from stenograph.teacher.tutor import Tutor
from tests.engine.streams import END, small_tokenizer
from tests.teacher.families import family
from tests.teacher.toy import readings, teacher

MISSING = [name for name in ("torch", "transformers") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
SMALL = small_tokenizer()
SESSIONS, BRANCHES, LENGTH, SHARED = 8, 8, 2000, 1500
AT_MOST = 0.4
"""Of the positions that scoring each branch alone computes."""


def model() -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=SMALL.vocab_size,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=LENGTH + 8,
        initializer_range=0.4,
        eos_token_id=SMALL.added[END],
        bos_token_id=None,
        pad_token_id=None,
    )
    return LlamaForCausalLM(config)


@pytest.mark.parametrize("positions", ["sampled", "all"])
async def test_what_is_shared_is_computed_once(positions: str) -> None:
    import torch

    from stenograph.engine.torch import TorchEngine

    network = model()
    engine = TorchEngine(network, SMALL, called="small")
    info = await engine.start()
    facts = teacher(name="small", model=info.model, top_k=3, positions=positions)
    tutor = Tutor(facts, engine, info, SMALL.vocab_size, at_once=1)
    found = [one for place in range(SESSIONS) for one in family(place, BRANCHES, LENGTH, SHARED, SMALL.vocab_size)]
    store = MemoryStore()
    taught = await Teachers(store, [tutor], None).taught("small", readings(found))
    assert tutor.tokens == SESSIONS * BRANCHES * LENGTH
    assert tutor.cached_tokens is not None
    computed = tutor.tokens - tutor.cached_tokens
    print(f"{computed} of {tutor.tokens} positions: {computed / tutor.tokens:.1%}")
    assert computed <= AT_MOST * tutor.tokens
    sample = taught[-1]
    with torch.inference_mode():
        truth = torch.log_softmax(network(torch.tensor(sample.tokens)[None].long()).logits[0].float(), -1)
    assert sample.teachers
    rows = sample.teachers["small"]
    asked = np.flatnonzero(sample.sampled) if positions == "sampled" else np.arange(1, LENGTH)
    own = truth[asked - 1, sample.tokens[asked]].numpy()
    assert np.abs(rows.token_logprobs[asked] - own).max() < 1e-3
    best = truth[asked - 1].topk(3)
    assert np.abs(rows.logprobs[asked] - best.values.numpy()).max() < 1e-3
    assert (rows.token_ids[asked] == best.indices.numpy()).mean() > 0.99
    await engine.close()
