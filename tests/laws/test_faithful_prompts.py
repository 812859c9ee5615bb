"""Laws 9, 8, 4 and 3 over every template at hand, whatever an agent does: played without a server.

A night of it: `pytest --hypothesis-profile=soak tests/laws/test_faithful_prompts.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hypothesis.strategies as st
from hypothesis import given, settings

from stenograph.render.rehearsal import Reply, Setting, rehearse
from stenograph.render.renderer import Renderer
from stenograph.render.telltales import TOOLS
from stenograph.render.template import Template
from stenograph.render.tokenizer import Tokenizer
from tests.laws.habits import Habit, habits, play
from tests.render.rollouts import Rollout
from tests.render.test_habits import renderer_at
from tests.render.test_probe import probed
from tools.exactness import TAILS, able, certified

SOME = settings(max_examples=max(settings().max_examples // 5, 1))
"""There are many templates; every one is drawn for."""


@SOME
@given(habit=habits, seed=st.integers(0, 1000))
def test_every_prompt_reads_right_and_every_fork_is_explained(tokenizer_folder: Path, habit: Habit, seed: int) -> None:
    rollout = Rollout(renderer_at(tokenizer_folder), seed, verbatim=habit.verbatim, strict=habit.strict)
    play(rollout, habit, tokenizer_folder.name)
    for turn in rollout.tree.turns.values():
        call = turn.call
        assert call.parent == call.after or call.fork is not None
        assert call.parent is None or len(rollout.tree.ids(call.parent))


# ---------------------------------------------------------------------------------------------------------- linear cost


class Meter:
    """How many characters each prompt's making rendered and tokenized."""

    def __init__(self) -> None:
        self.prompts: list[int] = []

    def count(self, text: str) -> str:
        if self.prompts:
            self.prompts[-1] += len(text)
        return text


@contextmanager
def metered() -> Iterator[Meter]:
    meter = Meter()
    prompt, render, encode = Renderer.prompt, Template.render, Tokenizer.encode

    def prompting(*given: Any, **named: Any) -> Any:
        meter.prompts.append(0)
        return prompt(*given, **named)

    def rendering(*given: Any, **named: Any) -> str:
        return meter.count(render(*given, **named))

    def encoding(self: Tokenizer, text: str, *, special: bool = False) -> list[int]:
        return encode(self, meter.count(text), special=special)

    with (
        patch.object(Renderer, "prompt", prompting),
        patch.object(Template, "render", rendering),
        patch.object(Tokenizer, "encode", encoding),
    ):
        yield meter


SETTLED = 8
"""Rounds after which a history is stood in for by one that no longer grows."""
DIGITS = 64
"""Numbers in the texts grow with the conversation; histories don't count."""


@settings(max_examples=max(settings().max_examples // 25, 1))
@given(tail=st.sampled_from(sorted(TAILS)), rounds=st.integers(12, 40))
def test_a_certified_turn_renders_and_tokenizes_only_what_is_new(
    tokenizer_folder: Path, tail: str, rounds: int
) -> None:
    renderer = renderer_at(tokenizer_folder)
    if not able(probed(tokenizer_folder), TAILS[tail]) or certified(renderer, tail) != "proven":
        return  # docs/EXACTNESS.md lists them, and is held to it
    with metered() as meter:
        rehearse(renderer, ["user", *TAILS[tail] * rounds, Reply()], TOOLS if tail != "user" else (), {}, Setting())
    round_of = sum(isinstance(step, Reply) for step in TAILS[tail])
    early, late = meter.prompts[SETTLED * round_of :][:round_of], meter.prompts[-1 - round_of : -1]
    assert max(late) <= max(early) + DIGITS
