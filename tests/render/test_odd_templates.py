"""Templates that nobody has seen: exact, faithful, and one sample where their text allows one."""

from __future__ import annotations

import pytest

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.core import Message
from stenograph.errors import ConfigError
from stenograph.render.tokenizer import Tokenizer
from tests.render import odd_templates
from tests.render.rollouts import TOOL, Rollout, renderer_with
from tests.render.test_habits import HABITS, REWROTE, echo, result, user

EOS = "<|im_end|>"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    try:
        return load_tokenizer(load_model_files("smollm2"))
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("habit", ["plain", "stripped", "truncated", "reasoned", "truncated_in_reasoning"])
@pytest.mark.parametrize("name", odd_templates.ALL)
def test_exact_and_faithful(tokenizer: Tokenizer, name: str, habit: str) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ALL[name], EOS), seed=5)
    HABITS[habit](rollout)
    assert set(rollout.forks) <= {"", REWROTE}


@pytest.mark.parametrize("name", ["system_in_user", "listens", "rounds", "xml_calls"])
def test_one_sample_where_the_text_allows_one(tokenizer: Tokenizer, name: str) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ALL[name], EOS), seed=6)
    messages = [Message("system", "Be brief."), user("Hello")]
    for number in range(8):
        reply = rollout.ask(messages, says=f"Answer {number}.")
        messages += [echo(reply), user(f"Next {number}")]
    assert not any(rollout.forks)


def test_replies_that_end_at_a_stop_string_are_one_sample_without_any_control_token(tokenizer: Tokenizer) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.PLAIN_TEXT, EOS), seed=7)
    messages = [user("Hello")]
    for number in range(4):
        reply = rollout.ask(messages, raw=f"Answer {number}.")
        messages += [echo(reply), user("Next")]
    assert not any(rollout.forks)


@pytest.mark.parametrize("name", ["odd_markers", "xml_calls"])
def test_calls_in_a_form_of_their_own_are_read_and_loop(tokenizer: Tokenizer, name: str) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ALL[name], EOS), seed=8)
    close = "" if name == "odd_markers" else EOS
    messages = [user("Find")]
    for number in range(4):
        reply = rollout.ask(messages, [TOOL], calls=[("look", {"q": f"cats {number}", "n": number})], close=close)
        messages += [echo(reply), result(reply)]
    rollout.ask(messages, [TOOL], says="Done.", close="[[/bot]]" if name == "odd_markers" else EOS)
    assert not any(rollout.forks)


def test_a_close_in_plain_text_is_no_content_and_stops_the_model(tokenizer: Tokenizer) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ODD_MARKERS, EOS), seed=10)
    messages = [user("Hello")]
    for number in range(4):
        reply = rollout.ask(messages, says=f"Answer {number}.", close="[[/bot]]")
        messages += [echo(reply), user("Next")]
    assert not any(rollout.forks)
    assert rollout.family.stop_strings == ("[[/bot]]",)


def test_a_text_that_the_template_listens_to_counts_for_ever(tokenizer: Tokenizer) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.LISTENS, EOS), seed=9)
    messages = [user("Hello")]
    for number in range(9):
        reply = rollout.ask(messages, says=f"Answer {number}.")
        messages += [echo(reply), user("Hush now: /quiet" if number == 4 else "Next")]
    contexts = [rollout.renderer.tokenizer.decode(turn.call.context.tolist()) for turn in rollout.tree.turns.values()]
    assert [context.endswith("(quiet) ") for context in contexts] == [False] * 5 + [True] * 4
