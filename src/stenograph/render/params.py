"""One argument of a call whose arguments are written one by one: its key, its value, and where the text goes on."""

from __future__ import annotations

import ast
import enum
import json
from collections.abc import Mapping, Sequence

from stenograph.core import JSON, Value
from stenograph.render.grammar import CallForm
from stenograph.render.marks import SHORT, begun, find, meet, skip_space

_WORDS: dict[str, JSON] = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
"""Some templates (qwen3-coder's, qwen3.5's) print values as Python does, and so do their models."""
_LETTERS = "\"'"
"""Quotes that are letters may be escaped, and either may be used; tokens may not."""
_OPEN, _CLOSE = "{[(", "}])"


class Met(enum.Enum):
    """What goes on behind a value."""

    WHOLE = enum.auto()
    SO_FAR = enum.auto()


class Param(Value):
    key: str
    value: JSON
    end: int
    sure: bool = True
    """However the text goes on, this is what it says."""


def param(
    form: CallForm, text: str, at: int, schemas: Mapping[str, Mapping[str, JSON]], *, first: bool
) -> Param | None:
    """None: there is none here, or not all of it."""
    keyed = _keyed(form, text, at, first=first)
    if keyed is None:
        return None
    key, valued, as_text = keyed
    if form.quote or not form.param[2].strip():
        return _loose_param(form, text, key, valued, schemas.get(key))
    between, behind = form.param[1:] if as_text or form.bare is None else form.bare
    ended = text.find(behind.strip(), valued)
    if ended < 0:
        return None
    value = _unspaced(text[valued:ended], between, behind)
    end = ended + len(behind.strip())
    if form.bare is not None:
        return Param(key, value if as_text else _worth(value), end)
    return Param(key, _typed(value, schemas.get(key)), end)


def in_json(params: Sequence[Param]) -> str:
    return "{" + ", ".join(f"{in_quotes(one.key)}: {json.dumps(one.value, ensure_ascii=False)}" for one in params) + "}"


def in_quotes(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _keyed(form: CallForm, text: str, at: int, *, first: bool) -> tuple[str, int, bool] | None:
    """The key, where its value begins, and whether it is written as a text."""
    before, separator, _ = form.param
    start = at if first else _met(form.joint, text, at)
    keyed = None if start is None else _met(before, text, start)
    separators = [separator, *([form.bare[0]] if form.bare else [])]
    found = find(separators, text, keyed) if keyed is not None and separator.strip() else None
    if found is None or keyed is None or not isinstance(found[2], int):
        return None
    return text[keyed : found[0]].strip(), found[2], found[1] == separator


def text_begun(
    form: CallForm, text: str, at: int, schemas: Mapping[str, Mapping[str, JSON]], *, first: bool
) -> tuple[str, str] | None:
    """The key and the beginning of a value that is a text for sure, and still comes."""
    keyed = _keyed(form, text, at, first=first)
    if keyed is None or form.quote or not form.param[2].strip():
        return None
    key, valued, as_text = keyed
    if not as_text or (form.bare is None and not _is_text(schemas.get(key))):
        return None
    before, closing = _around(*form.param[1:])
    value = text[valued:]
    if len(value) < len(before):
        return None
    held = max(begun(closing, value), begun(closing.lstrip(), value))
    return key, value.removeprefix(before)[: max(0, len(value.removeprefix(before)) - held)]


def _met(literal: str, text: str, at: int) -> int | None:
    end = meet(literal.strip(), text, skip_space(text, at))
    return end if isinstance(end, int) else None


def _unspaced(value: str, between: str, behind: str) -> str:
    """White space inside a value is its own, but for what the template puts around it."""
    before, closing = _around(between, behind)
    after = closing[: len(closing) - len(closing.lstrip())]
    value = value.removeprefix(before) if before else value
    return value.removesuffix(after) if after else value


def _around(between: str, behind: str) -> tuple[str, str]:
    """The white space before a value; what closes it, with the white space before that."""
    return between[len(between.rstrip()) :], behind.rstrip()


def _typed(value: str, schema: Mapping[str, JSON] | None) -> JSON:
    """Written without quotes, an argument is what its schema says; without one, what it looks like."""
    if _is_text(schema):
        return value
    text = value.strip()
    if schema and schema.get("type") is not None and text in _WORDS:
        return _WORDS[text]
    try:
        return _as_json(text)
    except ValueError:
        return value


def _is_text(schema: Mapping[str, JSON] | None) -> bool:
    types = schema.get("type") if schema else None
    return types == "string" or (isinstance(types, list) and "string" in types)


def _worth(text: str) -> JSON:
    """Of a value that is no string, or it would be quoted."""
    text = text.strip()
    if text in _WORDS:
        return _WORDS[text]
    try:
        return _as_json(text)
    except ValueError:
        return text


def _as_json(text: str) -> JSON:
    """Half a surrogate pair is no text, 1e999 no number, and what nests too deep nothing at all."""
    try:
        value: JSON = json.loads(text, strict=False, parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError as error:
        raise ValueError(text) from error
    return value


def _no_number(word: str) -> JSON:
    raise ValueError(word)


# ------------------------------------------------------------------------------------------------- with its own quotes


def _loose_param(form: CallForm, text: str, key: str, at: int, schema: Mapping[str, JSON] | None) -> Param | None:
    """A value ends by itself: with its quote, with its bracket, or where the next thing begins."""
    quotes = ['"', "'"] if form.quote in _LETTERS else [form.quote]
    start = skip_space(text, at)
    end = _value_end(text, start, quotes)
    if end is not None and (met := _goes_on(form, text, end)):
        return Param(key, _loose(text[start:end], quotes), end, sure=met is Met.WHOLE)
    words = (form.joint.strip(), form.closing.strip())
    ends = [place for word in words if word and (place := text.find(word, at)) >= 0]
    if form.quote or not ends:
        return None
    return Param(key, _typed(text[at : min(ends)], schema), min(ends), sure=False)


def _goes_on(form: CallForm, text: str, at: int) -> Met | None:
    place = skip_space(text, at)
    literals = (form.joint, form.closing, form.again, form.param[2])
    ends = [meet(word.strip(), text, place) for word in literals if word.strip()]
    if any(isinstance(end, int) for end in ends):
        return Met.WHOLE
    return Met.SO_FAR if SHORT in ends else None


def _value_end(text: str, start: int, quotes: list[str]) -> int | None:
    """Behind one value; None where it does not end."""
    depth, at = 0, start
    while at < len(text):
        quote = next((one for one in quotes if text.startswith(one, at)), None)
        if quote is not None:
            ended = _quote_end(text, at, quote)
            if ended is None:
                return None
            at = ended
        elif text[at] in _OPEN:
            depth, at = depth + 1, at + 1
        elif depth and text[at] in _CLOSE:
            depth, at = depth - 1, at + 1
        elif not depth and (text[at] in ",;" or text[at] in _CLOSE or text[at].isspace()):
            return at if at > start else None
        else:
            at += 1
            continue
        if not depth:
            return at
    return None


def _quote_end(text: str, at: int, quote: str) -> int | None:
    """`at`: where the quote begins."""
    place = at + len(quote)
    while (place := text.find(quote, place)) >= 0:
        slashes = len(text[:place]) - len(text[:place].rstrip("\\"))
        if quote not in _LETTERS or slashes % 2 == 0:
            return place + len(quote)
        place += 1
    return None


def _loose(text: str, quotes: list[str]) -> JSON:
    """A string in its quotes, a scalar, or JSON whose strings and keys are written in the family's way."""
    quote = next((one for one in quotes if text.startswith(one)), None)
    if quote is not None:
        return _unquoted(text, quote)
    if text[:1] in _OPEN:
        return _nested(text, quotes)
    return _worth(text)


def _unquoted(text: str, quote: str) -> JSON:
    inside = text[len(quote) : -len(quote)]
    if quote not in _LETTERS or "\\" not in inside:
        return inside
    try:
        return ast.literal_eval(text) if quote == "'" else _as_json(text)
    except (ValueError, SyntaxError):
        return inside


def _nested(text: str, quotes: list[str]) -> JSON:
    """Rewritten as JSON, and read so; text where that is not what it is."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        quote = next((one for one in quotes if text.startswith(one, at)), None)
        ended = _quote_end(text, at, quote) if quote is not None else None
        if quote is not None and ended is not None:
            pieces.append(json.dumps(_unquoted(text[at:ended], quote), ensure_ascii=False))
            at = ended
        elif text[at].isalnum() or text[at] in "_-+.$":
            word_end = at
            while word_end < len(text) and (text[word_end].isalnum() or text[word_end] in "_-+.$"):
                word_end += 1
            pieces.append(json.dumps(_key_or_worth(text, at, word_end), ensure_ascii=False))
            at = word_end
        else:
            pieces.append({"(": "[", ")": "]"}.get(text[at], text[at]))
            at += 1
    try:
        return _as_json("".join(pieces))
    except ValueError:
        return text


def _key_or_worth(text: str, start: int, end: int) -> JSON:
    """A word before a colon is a key."""
    return text[start:end] if text[skip_space(text, end) :].startswith(":") else _worth(text[start:end])
