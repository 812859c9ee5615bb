"""How a model family writes reasoning and tool calls: data, learned from its template (`learn.py`).

All literals are coded text (`coded.py`): a control token in them is one private character.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from stenograph.core import Value
from stenograph.render.template import Style


class CallForm(Value):
    kind: Literal["object", "named", "params"]
    """`object`: a JSON object with name and arguments in it (or a list of them). `named`: the name, then the arguments
    as JSON. `params`: the name, then each argument by itself."""
    opening: str
    """Before the first call: up to its JSON for `object`, up to its name otherwise."""
    again: str
    """Between what a call says and what the next one says; '' where there is never a second."""
    closing: str
    """Behind the last call, up to the close of the turn."""
    turn_close: str = ""
    """What closes a turn that called; '' where nothing does but the next turn's opening."""
    between: str = ""
    """`named`: from the name to the arguments. `params`: from the name to the first argument."""
    param: tuple[str, str, str] = ("", "", "")
    """`params`: before a key, between it and its value, behind the value (where the key may stand once more)."""
    bare: tuple[str, str] | None = None
    """`params`: the last two where the value is no string; None: the same, so that the schema has to tell."""
    quote: str = ""
    """`params`: around values that are strings, and around no others."""
    joint: str = ""
    """`params`: between two of them only."""
    name_key: str = "name"
    arguments_key: str = "arguments"
    id_key: str | None = None
    """`object`: under which key the call's id stands; None: it is not written."""
    by_id: bool = False
    """The id is written in place of the name, which is part of it (`functions.NAME:0`)."""
    listed: bool = False
    """`object`: the calls of a reply are one JSON list."""
    after_mark: str = ""
    """What the template writes behind a last argument's key, where its value is '', up to the end of what is said."""

    @property
    def start(self) -> str:
        """By what a call is known to begin, where its family opens calls with nothing of their own, too."""
        return self.opening.strip() or ("[" if self.listed else "{")


class Grammar(Value):
    name: str
    think: tuple[str, str] | None = None
    """Around reasoning; None: this family has none."""
    content_opening: str = ""
    """Before content, where the family names its channel (gpt-oss)."""
    call: CallForm | None = None
    """None: calls are not written, or not to be read."""
    text_close: str = ""
    """Text behind an answer that is no part of it: alone, where no control token closes a turn, or in front of one."""
    style: Style = Style()

    @property
    def has_markers(self) -> bool:
        """A reply may hold something that is not said."""
        return bool(self.think or self.content_opening or self.call)

    def without_calls(self) -> Grammar:
        """For a request that offers no tools: what looks like a call is text."""
        return msgspec.structs.replace(self, call=None)


class Parsers(Value):
    """What the operator says about reading replies."""

    tools: str = "auto"
    reasoning: str = "auto"


HERMES = CallForm(
    kind="object",
    opening="<tool_call>\n",
    again="\n</tool_call>\n<tool_call>\n",
    closing="\n</tool_call>",
    after_mark='": ""}}',
)
CALL_PARSERS = {"hermes": HERMES}
REASONING_PARSERS = {"think": ("<think>", "</think>")}
"""By the names that `--tool-parser` and `--reasoning-parser` take; their literals are not coded."""


def chosen(learned: Grammar, parsers: Parsers, code: Callable[[str], str]) -> Grammar:
    """`auto`: as the template writes; `none`; or by a parser's name."""
    call, think = learned.call, learned.think
    if parsers.tools != "auto":
        call = _coded(CALL_PARSERS[parsers.tools], code) if parsers.tools in CALL_PARSERS else None
    if parsers.reasoning != "auto":
        opening, closing = REASONING_PARSERS.get(parsers.reasoning, ("", ""))
        think = (code(opening), code(closing)) if closing else None
    return msgspec.structs.replace(learned, call=call, think=think)


def _coded(form: CallForm, code: Callable[[str], str]) -> CallForm:
    return msgspec.structs.replace(form, opening=code(form.opening), again=code(form.again), closing=code(form.closing))
