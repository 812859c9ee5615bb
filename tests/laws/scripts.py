"""What the engine says to an agent: random, repeatable, and never the ids that its tokenizer would give."""

from __future__ import annotations

import hypothesis.strategies as st

from stenograph.engine.script import Script
from tests.stage.models import Model

TEXTS = (
    *("yes", "The answer is 42.", "  padded \n", "\n", "", "naïve 日本語 🙂", "a\n\nb", '{"not": "a call"}'),
    *("<think>\nhm\n</think>\n\nyes", "He wrote </think> and left.", "looking at tokenization, therefore"),
)
BROKEN = '<tool_call>\n{"name": "look", "arg'


def replies(model: Model) -> st.SearchStrategy[tuple[str, ...]]:
    """In turn. None: random words."""
    called = (model.call, f"Let me see.\n{model.call}", f"{model.call}\n{model.call}", BROKEN)
    calling = st.sampled_from(called) if model.call else st.nothing()
    return st.lists(st.sampled_from(TEXTS) | calling, max_size=6).map(tuple)


def scripts(model: Model) -> st.SearchStrategy[Script]:
    return st.builds(
        Script,
        seed=st.integers(0, 2**16),
        model=st.just(model.name),
        max_model_len=st.just(4096),
        replies=replies(model),
        longest=st.just(12),
        cut=st.sampled_from((0.3, 1.0)),
        chunk=st.sampled_from((1, 4)),
        weight_version=st.sampled_from((None, "v1")),
    )


def babble(model: Model) -> st.SearchStrategy[Script]:
    """Any ids at all: control tokens in the middle, halves of characters, markers that nobody closes."""
    tokenizer = model.tokenizer
    ids = st.integers(0, tokenizer.vocab_size - 1) | st.sampled_from(sorted(tokenizer.control))
    said = st.lists(st.lists(ids, max_size=8).map(tuple), min_size=1, max_size=6).map(tuple)
    fixed = {"model": st.just(model.name), "max_model_len": st.just(4096)}
    return st.builds(Script, seed=st.integers(0, 2**16), replies=said, **fixed)
