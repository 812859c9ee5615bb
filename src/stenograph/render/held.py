"""What a reply is held to, so that it reads right: calls in the family's own form, behind its own reasoning.

A guide as a caller gives it is about what is said. What is sampled has the family's markers around it: they are added
here, as a structural tag of xgrammar's, in which a control token is that token and nothing spelled like it. The
counterpart of `writing.py`, of which a guide accepts every reply.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from stenograph.core import JSON, Conversation, Guide, Value
from stenograph.errors import CallerError
from stenograph.render.coded import Coding
from stenograph.render.family import Family
from stenograph.render.grammar import CallForm
from stenograph.render.marks import ANYTHING, KEY
from stenograph.render.tokenizer import Tokenizer

Format: TypeAlias = dict[str, JSON]
SPACE: Format = {"type": "regex", "pattern": "[ \\n]*"}
WORD: Format = {"type": "regex", "pattern": "[a-zA-Z0-9]+"}
"""An id, a count, the name of a type."""
NUMBER: Format = {"type": "regex", "pattern": "[0-9]+"}
CALL_ID: Format = {"type": "regex", "pattern": "[a-zA-Z0-9]{9}"}
"""As the strictest template wants them."""


class Demand(Value):
    """What the caller wants of a reply."""

    guide: Guide | None = None
    """Of its content."""
    calls: bool = False
    """One or more, instead."""
    tool: str | None = None
    """Which one; None: any."""
    single: bool = False
    """No more than one call."""


NO_DEMAND = Demand()


class Holder:
    def __init__(self, family: Family, conversation: Conversation, *, thinking: bool) -> None:
        """`thinking`: the prompt has opened the reasoning."""
        self._grammar = family.grammar
        self._coding: Coding = family.vocabulary.coding
        self._tokenizer: Tokenizer = family.vocabulary.tokenizer
        self._closes = family.closes.all
        self._tools = conversation.tools
        self._thinking = thinking

    def guide(self, demand: Demand) -> Guide | None:
        calls = self._grammar.call if self._tools else None
        if demand.calls:
            return self._tag(self._calls(demand))
        if demand.guide is None and demand.single and calls:
            return self._tag(_sequence([self._talk(calls), _maybe(self._calls(demand))]))
        if demand.guide is None:
            return None
        if not (self._thinking or self._grammar.content_opening or calls):
            return demand.guide
        content = _sequence([*self._literal(self._grammar.content_opening), _content(demand.guide)])
        return self._tag(_either([self._calls(demand), content]) if calls else content)

    def _tag(self, answer: Format) -> Guide:
        closes = [self._token(char) for char in sorted(self._closes)]
        ended = [_maybe(_either(closes))] if closes else []
        return Guide("tag", {"type": "structural_tag", "format": _sequence([*self._reasoning(), answer, *ended])})

    # -- reasoning -----------------------------------------------------------------------------------------

    def _reasoning(self) -> Iterator[Format]:
        if self._grammar.think is None:
            return
        opening, closing = self._grammar.think
        thought = _sequence([*self._until(closing), SPACE])
        if self._thinking:
            yield thought
        elif opening:
            yield _maybe(_sequence([*self._literal(opening), thought]))

    # -- calls ---------------------------------------------------------------------------------------------

    def _talk(self, form: CallForm) -> Format:
        """Text in which no call begins."""
        opening = form.opening.strip()
        if not opening or opening[0] in self._grammar.content_opening:
            words = "this model's calls begin like any text, so it cannot be held to one of them"
            raise CallerError(words, param="parallel_tool_calls")
        if self._is_token(opening[0]):
            return {"type": "any_tokens", "exclude_tokens": [self._token(opening[0])["token"]]}
        return {"type": "any_text", "excludes": [self._coding.spell(opening)]}

    def _calls(self, demand: Demand) -> Format:
        form = self._grammar.call
        if form is None:
            raise CallerError("the template of this model writes no tool calls", param="tool_choice")
        functions = [tool["function"] for tool in self._tools if demand.tool in (None, tool["function"]["name"])]
        one = _either([self._call(form, function) for function in functions])
        again = _text(", ") if form.listed else self._literal(form.again)
        more: list[Format] = (
            [{"type": "star", "content": _sequence([*again, one])}] if again and not demand.single else []
        )
        calls = [*_text("["), one, *more, *_text("]")] if form.listed else [one, *more]
        return _sequence([*self._literal(form.opening), *calls, *self._literal(form.closing)])

    def _call(self, form: CallForm, function: dict[str, JSON]) -> Format:
        write = {"object": self._object, "named": self._named, "params": self._params}[form.kind]
        return _sequence(list(write(form, function["name"], function.get("parameters") or {"type": "object"})))

    def _object(self, form: CallForm, name: str, schema: Format) -> Iterator[Format]:
        spelled = json.dumps({form.name_key: name}, ensure_ascii=False)[:-1]
        yield from _text(f'{spelled}, "{form.arguments_key}": ')
        yield _json(schema)
        if form.id_key:
            yield from (*_text(f', "{form.id_key}": "'), CALL_ID, *_text('"'))
        yield from _text("}")

    def _named(self, form: CallForm, name: str, schema: Format) -> Iterator[Format]:
        yield from (*_text(f"functions.{name}:"), NUMBER) if form.by_id else _text(name)
        before, anything, behind = form.between.partition(ANYTHING)
        yield from self._literal(before)
        if anything:
            yield CALL_ID
        yield from self._literal(behind)
        yield _json(schema)

    def _params(self, form: CallForm, name: str, schema: Format) -> Iterator[Format]:
        """Which arguments, and in what form: their values are any text, unless strings alone are quoted."""
        yield from (*_text(name), *self._literal(form.between))
        arguments = [self._argument(form, key, one) for key, one in (schema.get("properties") or {}).items()]
        if not arguments:
            return
        joint, one = self._literal(form.joint), _either(arguments)
        if joint:
            yield _maybe(_sequence([one, {"type": "star", "content": _sequence([*joint, one])}]))
        else:
            yield {"type": "star", "content": one}

    def _argument(self, form: CallForm, key: str, schema: Format) -> Format:
        is_text = schema.get("type") == "string"
        before, between, behind = form.param
        if form.bare is not None and not is_text:
            between, behind = form.bare
        behind = behind.replace(KEY, key)
        value = self._until(behind)
        if form.quote:
            quoted = [*self._literal(form.quote), *self._until(form.quote)]
            value = [*(quoted if is_text else [_json(schema)]), *self._literal(behind)]
        return _sequence([*self._literal(before), *_text(key), *self._literal(between), *value])

    # -- texts and tokens ----------------------------------------------------------------------------------

    def _literal(self, coded: str) -> list[Format]:
        runs = itertools.groupby(coded, key=lambda char: char == ANYTHING or self._is_token(char))
        return [part for single, run in runs for part in (map(self._one, run) if single else _text("".join(run)))]

    def _one(self, char: str) -> Format:
        return WORD if char == ANYTHING else self._token(char)

    def _until(self, coded: str) -> list[Format]:
        """Any text, and the literal that ends it. White space before a token belongs to the text."""
        place = next((place for place, char in enumerate(coded) if self._is_token(char)), len(coded))
        text, rest = coded[:place], coded[place:]
        if text.strip() or not rest:
            return [_tagged({"type": "any_text"}, text), *self._literal(rest)]
        end = self._token(rest[0])
        return [_tagged({"type": "any_tokens", "exclude_tokens": [end["token"]]}, end), *self._literal(rest[1:])]

    def _is_token(self, char: str) -> bool:
        return bool(char) and self._coding.spell(char) != char

    def _token(self, char: str) -> Format:
        return {"type": "token", "token": self._tokenizer.added[self._coding.spell(char)]}


def _content(asked: Guide) -> Format:
    match asked.kind:
        case "json":
            return _json(asked.value)
        case "object":
            return _json({"type": "object"})
        case "regex":
            return {"type": "regex", "pattern": asked.value}
        case "choice":
            return _either([part for choice in asked.value for part in _text(choice)])
        case "grammar":
            return {"type": "grammar", "grammar": asked.value}
        case "tag":
            return _format_of(asked.value)


def _format_of(tag: Format) -> Format:
    if "format" not in tag:
        raise CallerError("a structural tag without `format` cannot be joined with calls or reasoning")
    found: Format = tag["format"]
    return found


def _json(schema: JSON) -> Format:
    return {"type": "json_schema", "json_schema": schema}


def _text(text: str) -> list[Format]:
    return [{"type": "const_string", "value": text}] if text else []


def _tagged(content: Format, end: str | Format) -> Format:
    return {"type": "tag", "begin": "", "content": content, "end": end}


def _maybe(part: Format) -> Format:
    return {"type": "optional", "content": part}


def _sequence(parts: Sequence[Format]) -> Format:
    return parts[0] if len(parts) == 1 else {"type": "sequence", "elements": list(parts)}


def _either(parts: Sequence[Format]) -> Format:
    return parts[0] if len(parts) == 1 else {"type": "or", "elements": list(parts)}
