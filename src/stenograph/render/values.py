"""A value as a model writes it, to what it is: bare, in quotes of its family's own, or as nearly JSON."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping

from stenograph.core import JSON
from stenograph.render.marks import skip_space

_WORDS: dict[str, JSON] = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
"""Some templates (qwen3-coder's, qwen3.5's) print values as Python does, and so do their models."""
LETTERS = "\"'"
"""Quotes that are letters may be escaped, and either may be used; tokens may not."""
_OPEN, _CLOSE = "{[(", "}])"


def typed(value: str, schema: Mapping[str, JSON] | None) -> JSON:
    """Written without quotes, an argument is what its schema says; without one, what it looks like."""
    if is_text(schema):
        return value
    text = value.strip()
    if schema and schema.get("type") is not None and text in _WORDS:
        return _WORDS[text]
    try:
        return _as_json(text)
    except ValueError:
        return _as_python(text) if text[:1] in ("{", "[") else value


def is_text(schema: Mapping[str, JSON] | None) -> bool:
    types = schema.get("type") if schema else None
    return types == "string" or (isinstance(types, list) and "string" in types)


def worth(text: str) -> JSON:
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


def _as_python(text: str) -> JSON:
    """What some templates make of an object among the arguments, and so do their models; text where it is no JSON."""
    try:
        value = ast.literal_eval(text)
        return _as_json(json.dumps(value)) if isinstance(value, dict | list) else text
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def _no_number(word: str) -> JSON:
    raise ValueError(word)


def value_end(text: str, start: int, quotes: list[str]) -> int | None:
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
        if quote not in LETTERS or slashes % 2 == 0:
            return place + len(quote)
        place += 1
    return None


def loose(text: str, quotes: list[str]) -> JSON:
    """A string in its quotes, a scalar, or JSON whose strings and keys are written in the family's way."""
    quote = next((one for one in quotes if text.startswith(one)), None)
    if quote is not None:
        return _unquoted(text, quote)
    if text[:1] in _OPEN:
        return _nested(text, quotes)
    return worth(text)


def _unquoted(text: str, quote: str) -> JSON:
    inside = text[len(quote) : -len(quote)]
    if quote not in LETTERS or "\\" not in inside:
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
    return text[start:end] if text[skip_space(text, end) :].startswith(":") else worth(text[start:end])
