"""Which control tokens a template writes right behind an assistant turn: the ids a model has to be stopped at.

It is not always the tokenizer's `eos_token`, and not always one (`<|user|>` and `<|observation|>` close GLM's turns).
"""

from __future__ import annotations

import datetime

from stenograph.core import JSON, Message, ToolCall
from stenograph.errors import TemplateRefused
from stenograph.render.grammar import Grammar
from stenograph.render.standin import places, stand_in
from stenograph.render.template import Template, as_template_sees
from stenograph.render.tokenizer import Tokenizer

_ASKED = Message("user", "a")
_SAID = Message("assistant", "b")
_CALLED = Message("assistant", None, tool_calls=(ToolCall("abcdefghi", "f", {"x": "y"}),))
_RETURNED = Message("tool", "c", tool_call_id="abcdefghi", name="f")
_TOOL: dict[str, JSON] = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "d",
        "parameters": {"type": "object", "properties": {"x": {"type": "string", "description": "d"}}, "required": []},
    },
}
_NOON = datetime.datetime(2000, 1, 1, 12, tzinfo=datetime.UTC)
_SHAPES: tuple[tuple[tuple[Message, ...], tuple[dict[str, JSON], ...]], ...] = (
    ((_ASKED, _SAID, _ASKED), ()),
    ((_ASKED, _SAID), ()),
    ((_ASKED, _CALLED, _RETURNED), (_TOOL,)),
)
"""An answer that is answered, an answer that is the last, a call that is answered."""


def closers(template: Template, tokenizer: Tokenizer, grammar: Grammar) -> frozenset[int]:
    found = (_close(template, tokenizer, grammar, messages, tools) for messages, tools in _SHAPES)
    return frozenset(id for id in found if id is not None)


def _close(
    template: Template,
    tokenizer: Tokenizer,
    grammar: Grammar,
    messages: tuple[Message, ...],
    tools: tuple[dict[str, JSON], ...],
) -> int | None:
    seen = [as_template_sees(stand_in(1, message) if place == 1 else message) for place, message in enumerate(messages)]
    try:
        text = template.render(seen, tools, {}, generate=messages[-1].role != "assistant", now=_NOON)
    except TemplateRefused:
        return None  # a template without tools has no close of a call
    found = places(text)
    if not found:
        return None
    ids = tokenizer.encode(text[found[-1].end :])
    own = {tokenizer.added.get(marker) for marker in grammar.markers}
    return next((id for id in ids if id in tokenizer.special and id not in own), None)
