"""A reply to text, in the form in which a model of this family would write it: the reader's counterpart.

No model needs it. It is how stand-in replies are made where a template is tried out without one.
"""

from __future__ import annotations

import json

from stenograph.core import JSON, Message
from stenograph.render.family import Family
from stenograph.render.grammar import CallForm
from stenograph.render.marks import ANYTHING, KEY


class ReplyWriter:
    def __init__(self, family: Family, eos: str) -> None:
        """`eos`: how a model ends whose template closes its turns with nothing."""
        self._grammar = family.grammar
        self._closes = family.closes
        self._spell = family.vocabulary.coding.spell
        self._eos = eos

    def write(self, reply: Message, *, thinking: bool, close: str | None = None) -> str:
        """`thinking`: the prompt has opened the reasoning. `close`: None for the family's own, '' for none."""
        text = self._reasoning(reply.reasoning, thinking)
        if reply.content is not None:
            text += self._spell(self._grammar.content_opening) + reply.content
        if reply.tool_calls:
            text += self._calls(reply)
        return text + (self.close(called=bool(reply.tool_calls)) if close is None else close)

    def close(self, *, called: bool) -> str:
        closes, text_close = self._closes, self._spell(self._grammar.text_close)
        found = closes.called if called and closes.called else closes.last or closes.answered
        if found and text_close != self._grammar.text_close and not called:
            return text_close + self._spell(found)
        return self._spell(found) or text_close or self._eos

    def _reasoning(self, reasoning: str | None, thinking: bool) -> str:
        if self._grammar.think is None or (reasoning is None and not thinking):
            return ""
        opening, closing = map(self._spell, self._grammar.think)
        space = "" if self._grammar.content_opening else "\n\n"
        return ("" if thinking else f"{opening}\n") + f"{reasoning or ''}\n{closing}{space}"

    def _calls(self, reply: Message) -> str:
        form = self._grammar.call
        if form is None:
            raise ValueError("this family writes no calls")
        write = {"object": self._object, "named": self._named, "params": self._params}[form.kind]
        bodies = [
            write(form, place, call.name, call.arguments if isinstance(call.arguments, dict) else {})
            for place, call in enumerate(reply.tool_calls)
        ]
        listed = (
            "[" + ", ".join(bodies) + "]"
            if form.listed
            else self._spell(form.again).replace(ANYTHING, _id(1)).join(bodies)
        )
        return self._spell(form.opening).replace(ANYTHING, _id(0)) + listed + self._spell(form.closing)

    def _object(self, form: CallForm, place: int, name: str, arguments: dict[str, JSON]) -> str:
        named = {form.name_key: name, form.arguments_key: arguments}
        return json.dumps(named | ({form.id_key: _id(place)} if form.id_key else {}), ensure_ascii=False)

    def _named(self, form: CallForm, place: int, name: str, arguments: dict[str, JSON]) -> str:
        spelled = f"functions.{name}:{place}" if form.by_id else name
        between = self._spell(form.between).replace(ANYTHING, _id(place))
        return spelled + between + json.dumps(arguments, ensure_ascii=False)

    def _params(self, form: CallForm, place: int, name: str, arguments: dict[str, JSON]) -> str:
        between = self._spell(form.between).replace(ANYTHING, str(place + 1))
        pairs = (self._param(form, key, value) for key, value in arguments.items())
        return name + between + self._spell(form.joint).join(pairs)

    def _param(self, form: CallForm, key: str, value: JSON) -> str:
        is_text = isinstance(value, str)
        separator, behind = form.param[1:] if is_text or form.bare is None else form.bare
        written = value if is_text else json.dumps(value, ensure_ascii=False)
        quote = form.quote if is_text else ""
        separator, behind = separator.replace(ANYTHING, ""), behind.replace(KEY, key)
        return self._spell(form.param[0] + key + separator + quote + written + quote + behind)


def _id(place: int) -> str:
    """Nine letters, as the strictest template wants them, where a family writes its calls' ids."""
    return f"zzzzzzzz{place}"
