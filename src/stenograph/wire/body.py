"""JSON bodies to typed values. Every way to fail becomes a `CallerError` that names the field and says what is wrong.

msgspec checks and says where, in its own words and types; here they become the caller's: `messages[2].content:
expected string or null, got integer`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Annotated, TypeAlias, TypeVar

import msgspec

from stenograph.core import ID, IDS, JSON
from stenograph.errors import CallerError
from stenograph.wire.choices import choices

T = TypeVar("T")
Fields: TypeAlias = Mapping[str, msgspec.Raw]
"""A body's top level, names to bytes that nobody has read yet."""

Id: TypeAlias = Annotated[str, msgspec.Meta(pattern=ID)]
"""Of sessions, groups and turns."""

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_PLACE = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>.*)`$", re.DOTALL)
_FIELD = re.compile(r"^Object (?P<problem>missing required|contains unknown) field `(?P<name>.*)`$", re.DOTALL)
_PROBLEMS = {"missing required": "it is required", "contains unknown": "there is no such field"}
_CHOICE = "Invalid enum value"
_ESCAPES = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)")
"""Those that may be half a character, and those that look like it."""
_TYPES = re.compile(r"`([a-z]+(?: \| [a-z]+)*)`")
_NAMES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}


def fields(body: bytes) -> Fields:
    """Which fields a body has, at the cost of a skim."""
    return decode(body, _FIELDS)


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _mistake(str(error), "", decoder.type) from error
    except UnicodeDecodeError as error:
        raise CallerError("the body is not JSON: it is not UTF-8", code="invalid_json") from error
    except msgspec.DecodeError as error:
        problem = _half_a_character(body) or error if body.strip() else "it is empty"
        raise CallerError(f"the body is not JSON: {problem}", code="invalid_json") from error
    except RecursionError as error:
        raise CallerError("the body is nested too deeply", code="invalid_json") from error


def written(fields: Mapping[str, object]) -> bytes:
    """The body that somebody in this process would have sent: numbers of numpy's and torch's are numbers, and what JSON
    has no word for (NaN, half a character) is refused here, before anything holds it that a store could not keep."""
    try:
        return json.dumps(fields, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CallerError(f"what was given is not JSON: {error}", code="invalid_json") from error


def _plain(value: object) -> JSON:
    return value.tolist() if hasattr(value, "tolist") else msgspec.to_builtins(value)


def said(fields: Fields, names: AbstractSet[str]) -> dict[str, msgspec.Raw]:
    """Those of the fields that are there, and not null: as the caller wrote them, but in one line."""
    found = (name for name in sorted(names & fields.keys()) if not is_null(fields[name]))
    return {name: msgspec.Raw(msgspec.json.format(bytes(fields[name]), indent=-1)) for name in found}


def is_null(raw: msgspec.Raw) -> bool:
    return bytes(raw).strip() == b"null"


def value(raw: msgspec.Raw, field: str) -> JSON:
    """Of a field that was skimmed over, once somebody wants it."""
    try:
        return msgspec.json.decode(raw)
    except RecursionError as error:
        raise CallerError("it is nested too deeply", param=field) from error
    except ValueError as error:
        raise CallerError(f"{field} is not JSON: {error}", code="invalid_json", param=field) from error


def convert(value: JSON, type: type[T], field: str = "") -> T:
    """A value that is JSON already; `field` is where it stands in the body."""
    try:
        return msgspec.convert(value, type, str_keys=True)
    except msgspec.ValidationError as error:
        raise _mistake(str(error), field, type) from error


def query(parameters: Mapping[str, str], type: type[T]) -> T:
    """A query string's parameters: numbers arrive as text."""
    try:
        return msgspec.convert(dict(parameters), type, strict=False)
    except msgspec.ValidationError as error:
        raise _mistake(str(error), "", type) from error


def refuse(field: str, why: str, *, code: str | None = None) -> CallerError:
    return CallerError(f"{field}: {why}", code=code, param=field)


def _half_a_character(body: bytes) -> str | None:
    """What JavaScript makes of a text that it cuts inside of an emoji: its JSON holds what no UTF-8 does."""
    half = next((escape for escape in _ESCAPES.finditer(body) if escape["half"]), None)
    return (
        half
        and f"{half['half'].decode('latin-1')} (byte {half.start()}) is half a character: a text was cut inside of one"
    )


def _mistake(words: str, field: str, type: object) -> CallerError:
    """msgspec's words, with the place taken out of them and put in front."""
    place = _PLACE.search(words)
    expected = _expected(choices(type, place["path"] if place else "")) if words.startswith(_CHOICE) else ""
    if place:
        words = words[: place.start()] + (", as a key" if place["key"] else "")
        field += place["path"].replace("[...]", "")
    if about := _FIELD.match(words):
        field, words = f"{field}.{about['name']}", _PROBLEMS[about["problem"]]
    field = field.removeprefix(".")
    sentence = _sentence(words) + expected
    return CallerError(f"{field}: {sentence}" if field else f"the body: {sentence}", param=field or None)


def _expected(known: list[str]) -> str:
    return f": expected {' or '.join(filter(None, (', '.join(known[:-1]), known[-1])))}" if known else ""


def _sentence(words: str) -> str:
    if " matching regex " in words:  # there is one pattern, that of ids
        return IDS
    words = words.replace(_CHOICE, "there is no such choice as")
    words = _TYPES.sub(_for_people, words)
    return words[:1].lower() + words[1:]


def _for_people(types: re.Match[str]) -> str:
    return " or ".join(_NAMES.get(name, name) for name in types[1].split(" | "))
