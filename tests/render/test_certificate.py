"""Law 8: a certified turn renders what is new in it, however long its history; only what can be proven is certified.

That a certified prompt is the one that the whole conversation gives, `Rollout` checks on every turn of every test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stenograph.core import Message
from stenograph.render.certificate import Shape, skeleton
from stenograph.render.tokenizer import Tokenizer
from tests.render import odd_templates
from tests.render.rollouts import TOOL, Rollout, renderer_of, renderer_with
from tests.render.test_habits import echo, renderer_at, result, user
from tests.render.test_odd_templates import EOS, tokenizer

__all__ = ["tokenizer"]

U, A, T = (Shape(role, False, True, 0, False) for role in ("user", "assistant", "tool"))


def talk(rollout: Rollout, turns: int) -> list[int]:
    """How many prompts were made by certificate, after each turn."""
    quick, messages = [], [Message("system", "Be brief."), user("Hello")]
    for number in range(turns):
        reply = rollout.ask(messages, says=f"Answer {number}.")
        messages += [echo(reply), user(f"Next {number}")]
        quick.append(rollout.renderer.certificates.quick)
    return quick


def test_a_conversation_that_goes_on_in_the_same_way_is_certified(shared_tokenizers: dict[str, Path]) -> None:
    rollout = Rollout(renderer_of(shared_tokenizers["qwen2.5"]), seed=1)
    quick = talk(rollout, 12)
    assert quick[-1] - quick[3] == 8
    assert rollout.renderer.certificates.proofs <= 3


@pytest.mark.parametrize("name", ["odd_markers", "system_in_user"])
def test_a_conversation_on_a_template_nobody_has_seen_is_certified(tokenizer: Tokenizer, name: str) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ALL[name], EOS), seed=4)
    quick = talk(rollout, 12)
    assert quick[-1] - quick[3] == 8


def test_a_tool_loop_is_certified(shared_tokenizers: dict[str, Path]) -> None:
    rollout = Rollout(renderer_at(shared_tokenizers["qwen3"]), seed=2)
    before = rollout.renderer.certificates.quick
    messages = [user("Find")]
    for number in range(10):
        reply = rollout.ask(messages, [TOOL], calls=[("look", {"q": f"cats {number}"})], thinks="hm")
        messages += [echo(reply), result(reply)]
    assert rollout.renderer.certificates.quick - before >= 6


@pytest.mark.parametrize("name", ["rounds", "thousandth"])
def test_a_template_that_counts_is_never_certified(tokenizer: Tokenizer, name: str) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ALL[name], EOS), seed=3)
    assert talk(rollout, 10)[-1] == 0


def test_the_skeleton_of_a_long_conversation_is_that_of_a_short_one() -> None:
    assert skeleton([U, A] * 3 + [U]) == skeleton([U, A] * 50 + [U])
    assert skeleton([U, A, T, A, T, A, T]) == skeleton([U] + [A, T] * 30)
    assert skeleton([U, A, U]) != skeleton([U, A, U, A, U])
    assert skeleton([]) == ()
