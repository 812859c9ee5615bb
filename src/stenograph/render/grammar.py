"""How a model family writes reasoning and tool calls.

A grammar is found by what the template itself writes, not by a model's name, so a fine-tune is read like its family.
"""

from __future__ import annotations

import msgspec

from stenograph.core import JSON, Value


class Grammar(Value):
    name: str
    think: tuple[str, str] | None = None
    """Markers around reasoning; None: this family has none."""
    call: tuple[str, str] | None = None
    """Markers around each tool call, which is `{"name": …, "arguments": {…}}` in JSON; None: calls are not parsed."""

    def without_calls(self) -> Grammar:
        """For a request that offers no tools: what looks like a call is text."""
        return msgspec.structs.replace(self, call=None)

    @property
    def markers(self) -> tuple[str, ...]:
        return (*(self.think or ()), *(self.call or ()))


THINK = ("<think>", "</think>")
HERMES = ("<tool_call>", "</tool_call>")
CALL_PARSERS = {"hermes": HERMES}
REASONING_PARSERS = {"think": THINK}
"""By the names that `--tool-parser` and `--reasoning-parser` take."""


class CallText(msgspec.Struct):
    """The body of a call. `arguments` stays the very text that was sampled."""

    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


_call_decoder = msgspec.json.Decoder(CallText)


def read_call(body: str) -> tuple[str, str, dict[str, JSON]] | None:
    """Name, arguments as written, arguments as an object; None where the body is not a call."""
    try:
        call = _call_decoder.decode(body)
        arguments: JSON = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    if not isinstance(arguments, dict):
        return None
    return call.name, bytes(call.arguments).decode(), arguments


def grammar_of(template_source: str) -> Grammar:
    """By the markers that the template writes itself."""
    think = THINK if all(marker in template_source for marker in THINK) else None
    hermes = all(marker in template_source for marker in (*HERMES, '"arguments": '))
    return Grammar(name="hermes" if hermes else "none", think=think, call=HERMES if hermes else None)


def choose_grammar(template_source: str, *, tools: str, reasoning: str) -> Grammar | None:
    """`auto`: what the template says; `none`; or a parser's name. None: there is no such parser."""
    found = grammar_of(template_source)
    if tools not in ("auto", "none", *CALL_PARSERS) or reasoning not in ("auto", "none", *REASONING_PARSERS):
        return None
    call = found.call if tools == "auto" else CALL_PARSERS.get(tools)
    think = found.think if reasoning == "auto" else REASONING_PARSERS.get(reasoning)
    return Grammar(name=found.name if tools == "auto" else tools, think=think, call=call)
