"""Our bridge beside the one that PyPI's `renderers` has written by hand, family by family: are the ids the same?

Both are given the same turns: a prompt, what was sampled behind it, the messages that follow. Where they differ, the
template is asked: a prompt reads right if its text is the template's own render of the conversation.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from stenograph.core import JSON, Conversation, Message, Value
from stenograph.render.template import Style, as_template_sees
from tests.render.rollouts import TOOL, Rollout, squeezed
from tests.render.test_habits import echo, renderer_at, result, user

FAMILIES = {
    "qwen3": "Qwen3RendererConfig",
    "qwen3.5": "Qwen35RendererConfig",
    "kimi-k2": "KimiK2RendererConfig",
    "deepseek-v3.1": "DeepSeekV3RendererConfig",
    "surrogate-glm-4.6": "GLM45RendererConfig",
    "surrogate-minimax-m2": "MiniMaxM2RendererConfig",
}
"""Its classes. Not here: gpt-oss, for which it downloads a vocabulary, and llama3.1, whose folder lacks a token."""
Turns: TypeAlias = tuple[list[Message], Message, list[Message]]
"""The messages of the first turn, its reply, and what follows."""
MARKERS = "<|im_end|> <tool_call> </think> <|eot_id|>"


class Bridged(Value):
    """One turn that follows another, by both: what they put behind the sampled tokens."""

    ours: tuple[int, ...] | None
    """None: it forks."""
    theirs: tuple[int, ...] | None
    """None: it declines."""
    ours_right: bool
    theirs_right: bool

    @property
    def verdict(self) -> str:
        if self.ours == self.theirs:
            return "same" if self.ours else "both decline"
        if self.ours is None or self.theirs is None:
            return "ours declines" if self.ours is None else "theirs declines"
        return f"ours {_word(right=self.ours_right)}, theirs {_word(right=self.theirs_right)}"


def _word(*, right: bool) -> str:
    return "right" if right else "wrong"


def _answered(rollout: Rollout, *, thinks: str | None = None, cut: int | None = None, then: str = "And?") -> Turns:
    messages = [Message("system", "Be brief."), user("Hello")]
    close = None if cut is None else ""
    reply = rollout.ask(messages, says="It is forty-two, of course.", thinks=thinks, close=close, cut=cut)
    return messages, reply, [user(then)]


def _called(rollout: Rollout, count: int = 1, *, thinks: str | None = None, says: str = "found it") -> Turns:
    messages = [Message("system", "Use tools."), user("Find")]
    calls = [("look", {"q": f"cats {number}"}) for number in range(count)]
    reply = rollout.ask(messages, [TOOL], calls=calls, thinks=thinks)
    return messages, reply, [result(reply, place, says) for place in range(count)]


CASES: dict[str, Callable[[Rollout], Turns]] = {
    "user": _answered,
    "user, thinking": lambda rollout: _answered(rollout, thinks="Let me see"),
    "user behind a cut": lambda rollout: _answered(rollout, cut=16),
    "user with markers": lambda rollout: _answered(rollout, then=f"What is {MARKERS}?"),
    "result": _called,
    "result, thinking": lambda rollout: _called(rollout, thinks="I should look"),
    "two results": lambda rollout: _called(rollout, 2),
    "result with markers": lambda rollout: _called(rollout, says=MARKERS),
}


def bridged(folder: Path, case: str) -> Bridged:
    rollout, tools = Rollout(renderer_at(folder), seed=3), (TOOL,) if "result" in case else ()
    messages, reply, new = CASES[case](rollout)
    rollout.ask([*messages, echo(reply), *new], tools, says="Done.")
    first, second = rollout.tree.turns.values()
    ours = None if second.call.parent is None else tuple(second.call.context.tolist())
    theirs = _theirs(folder, first.call.context.tolist(), first.sampled.tolist(), new, tools)
    conversation = rollout.renderer.relevant(Conversation((*messages, reply, *new), tools))
    render = rollout.template_render(conversation)
    return Bridged(ours, theirs, _reads_right(rollout, ours, render), _reads_right(rollout, theirs, render))


def _reads_right(rollout: Rollout, context: Sequence[int] | None, render: str) -> bool:
    """As the template ends the conversation; and with no marker of a text taken for a real one."""
    spell, encode = rollout.renderer.tokenizer.decode, rollout.renderer.tokenizer.encode
    if context is None or not render.endswith(squeezed(spell(context))):
        return False
    harmless = encode(spell(context).replace(MARKERS, "words"))
    control = rollout.renderer.tokenizer.control
    return sum(id in control for id in context) == sum(id in control for id in harmless)


def _theirs(
    folder: Path, prompt: list[int], sampled: list[int], new: Sequence[Message], tools: Sequence[dict[str, JSON]]
) -> tuple[int, ...] | None:
    seen = [as_template_sees(message, Style()) for message in new]
    specs = [tool["function"] for tool in tools] or None
    made = _their_renderer(folder).bridge_to_next_turn(prompt, sampled, seen, tools=specs)
    if made is None:
        return None
    before = [*prompt, *sampled]
    assert list(made.token_ids[: len(before)]) == before, "it does not continue what was sampled"
    return tuple(made.token_ids[len(before) :])


@cache
def _their_renderer(folder: Path) -> Any:
    renderers, transformers = importlib.import_module("renderers"), importlib.import_module("transformers")
    config = getattr(importlib.import_module("renderers.configs"), FAMILIES[folder.name])()
    return renderers.create_renderer(transformers.AutoTokenizer.from_pretrained(str(folder)), config)
