"""The arguments of a call while they are written: as much of their JSON as no later token can change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Protocol

from stenograph.core import JSON
from stenograph.render.grammar import CallForm
from stenograph.render.marks import SHORT, find
from stenograph.render.params import Param, in_quotes, param, text_begun


class Arguments(Protocol):
    over: bool
    """They are all there, or something has come that cuts them off."""

    def more(self, text: str) -> str:
        """What is sure now and was not before; `text` is the call as far as it goes."""

    def rest(self, text: str) -> str:
        """What is left of them, once the call has been read."""


class JsonArguments:
    """An object: it ends with its own bracket."""

    def __init__(self, at: int, fences: Sequence[str]) -> None:
        """`fences`: what closes a call, or opens another; an object that is not whole by then never will be."""
        self.over = False
        self._at = self._clear = at
        self._fences = [fence for fence in fences if fence.strip()]
        self._depth = 0
        self._in_string = self._escaped = self._ended = False

    def more(self, text: str) -> str:
        if self.over:
            return ""
        start, found = self._at, find(self._fences, text, self._clear)
        self._clear = found[0] if found else len(text)
        self._walk(text, self._clear)
        if found is not None and found[2] is not SHORT:
            self.over = True
        return text[start : self._at]

    def rest(self, text: str) -> str:
        start = self._at
        self._walk(text, len(text))
        return text[start : self._at]

    def _walk(self, text: str, limit: int) -> None:
        while self._at < limit and not self._ended:
            self._step(text[self._at])
            self._at += 1
            self._ended = self.over = self._depth == 0

    def _step(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif char == '"':
            self._in_string = not self._in_string
        elif self._in_string:
            self._escaped = char == "\\"
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1


class ParamArguments:
    """One by one: each is written as JSON when it is there; a text also while it comes, where it cannot be anything
    else."""

    def __init__(self, form: CallForm, at: int, schemas: Mapping[str, Mapping[str, JSON]]) -> None:
        self.over = False
        self._form = form
        self._at = at
        self._schemas = schemas
        self._count = 0
        self._said: str | None = None
        """As much of a text as was written; None: none is under way."""

    def more(self, text: str) -> str:
        pieces: list[str] = []
        while (one := self._next(text)) is not None and one.sure:
            pieces.append(self._take(one))
        if one is None:
            pieces.append(self._begun(text))
        self.over = self._said is None
        return "".join(pieces)

    def rest(self, text: str) -> str:
        """Of arguments that were not sure, what they have turned out to be."""
        pieces: list[str] = []
        while (one := self._next(text)) is not None:
            pieces.append(self._take(one))
        return "".join([*pieces, "}"])

    def _next(self, text: str) -> Param | None:
        return param(self._form, text, self._at, self._schemas, first=not self._count)

    def _take(self, one: Param) -> str:
        if self._said is None:
            piece = self._key(one.key) + json.dumps(one.value, ensure_ascii=False)
        else:
            piece = _inside(str(one.value)[len(self._said) :]) + '"'
        self._at, self._count, self._said = one.end, self._count + 1, None
        return piece

    def _key(self, key: str) -> str:
        return ("{" if not self._count else ", ") + in_quotes(key) + ": "

    def _begun(self, text: str) -> str:
        found = text_begun(self._form, text, self._at, self._schemas, first=not self._count)
        if found is None:
            return ""
        key, value = found
        before = self._key(key) + '"' if self._said is None else ""
        more = value[len(self._said or "") :]
        self._said = (self._said or "") + more
        return before + _inside(more)


def _inside(text: str) -> str:
    return in_quotes(text)[1:-1]
