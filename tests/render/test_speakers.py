"""Who speaks, on every real template at hand: the developer, as agents of OpenAI's have it, and replies with a name."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stenograph.core import Message
from stenograph.render.tokenizer import Tokenizer
from tests.render.rollouts import TOOL, Rollout, renderer_with
from tests.render.test_habits import echo, renderer_at, user
from tests.render.test_odd_templates import EOS, tokenizer

__all__ = ["tokenizer"]

ASSISTANT_EDITED = "assistant_edited"
SYSTEM, DEVELOPER = Message("system", "Be brief."), Message("developer", "Speak of cats.")
HEADS = ((DEVELOPER,), (SYSTEM, DEVELOPER), (DEVELOPER, Message("developer", "No dogs.")))
KNOWS_HIM = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def talk(rollout: Rollout, head: tuple[Message, ...], name: str | None = None) -> None:
    messages = [*head, user("Hello")]
    for number in range(2):
        reply = rollout.ask(messages, says=f"Answer {number}.")
        messages += [msgspec.structs.replace(echo(reply), name=name), user(f"Next {number}")]


def prompt(rollout: Rollout) -> str:
    first = next(iter(rollout.tree.turns.values())).call
    return rollout.renderer.tokenizer.decode(first.context.tolist())


def test_the_model_is_told_all_of_it(tokenizer_folder: Path) -> None:
    """And goes on as it does behind what a system says."""
    other = Rollout(renderer_at(tokenizer_folder), seed=11)
    talk(other, (SYSTEM,))
    for head in HEADS:
        rollout = Rollout(renderer_at(tokenizer_folder), seed=11)
        talk(rollout, head)
        assert [one for one in head if (one.content or "") not in prompt(rollout)] == []
        assert not any(rollout.unwritten)
        assert rollout.forks == other.forks


def test_a_template_that_knows_him_is_shown_him(tokenizer: Tokenizer) -> None:
    rollout = Rollout(renderer_with(tokenizer, KNOWS_HIM, EOS), seed=13)
    talk(rollout, (SYSTEM, DEVELOPER))
    assert "<|im_start|>developer\nSpeak of cats." in prompt(rollout)


def test_a_name_of_who_replies_changes_nothing_where_none_is_written(tokenizer_folder: Path) -> None:
    """Frameworks of several agents put the agent's name onto what the model said."""
    renderer = renderer_at(tokenizer_folder)
    named, other = Rollout(renderer, seed=15), Rollout(renderer, seed=15)
    talk(named, (SYSTEM,), name="reader")
    talk(other, (SYSTEM,))
    minds = "reader" in prompt(named) or ASSISTANT_EDITED in named.forks
    assert minds == named.family.grammar.style.reply_names
    assert minds or named.forks == other.forks


def test_what_systems_say_is_left_to_the_template(tokenizer: Tokenizer) -> None:
    """Only the developer is a name that it may not know: of two others it has a word of its own."""
    first_only = KNOWS_HIM.replace("messages %}", "messages if loop.first or m.role != 'system' %}", 1)
    first_only = first_only.replace("loop.first", "m is sameas messages[0]")
    rollout = Rollout(renderer_with(tokenizer, first_only, EOS), seed=14)
    rollout.ask([SYSTEM, Message("system", "No dogs."), user("Hello")], [TOOL], says="Yes.")
    assert rollout.unwritten == [("messages[1]",)]
