"""The text of a call to its name and arguments, by the form of its family."""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Mapping
from typing import TypeAlias

from stenograph.core import JSON, Value, too_nested
from stenograph.render.grammar import CallForm
from stenograph.render.marks import ANYTHING, SHORT, Short, find, meet, skip_space
from stenograph.render.params import Param, in_json, param


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number


_JSON = json.JSONDecoder(strict=False, parse_constant=_finite, parse_float=_finite)
"""Raw line breaks in strings are let through, as models write them; NaN and 1e999, which are no JSON, are not."""
_NAME = re.compile(r"[\w.:/-]+")
_LONGEST_NAME = 256
BRACKETS = " \n{}[]"
_IN_ID = re.compile(r"(?:functions\.)?(?P<name>.+?)(?::\d+)?")


class ReadCall(Value):
    name: str
    arguments: dict[str, JSON]
    text: str
    """The arguments as they were written; as JSON where they were not written so."""
    id: str | None = None


class Read(Value):
    calls: tuple[ReadCall, ...]
    end: int
    """Behind what was said; a closing marker may follow."""


class Head(Value):
    """Of a call that has begun for sure, if its arguments do."""

    name: str
    id: str | None
    """As the model wrote it; None: not at all."""
    end: int
    """Where the arguments begin."""


class Unread(enum.Enum):
    MORE = enum.auto()
    """It may still become a call."""
    NEVER = enum.auto()


MORE, NEVER = Unread.MORE, Unread.NEVER
Schemas: TypeAlias = Mapping[str, Mapping[str, JSON]]
"""By tool, its parameters' schemas: the types of arguments that are written without quotes."""


def read_call(form: CallForm, text: str, schemas: Schemas, *, final: bool) -> Read | Unread:
    """Reads what stands behind the opening. `final`: no more text will come."""
    read = _READERS[form.kind](form, text, schemas, final)
    return NEVER if final and read is MORE else read


def head(form: CallForm, text: str) -> Head | None:
    """What stands before the arguments of a single call; None: it is not known yet."""
    found = _HEADS[form.kind](form, text)
    if not isinstance(found, Head) or (form.kind != "params" and text[found.end : found.end + 1] != "{"):
        return None
    return found


def _object(form: CallForm, text: str, schemas: Schemas, final: bool) -> Read | Unread:
    start = skip_space(text, 0)
    if start < len(text) and text[start] not in "{[":
        return NEVER
    found = json_at(text, start)
    if found is None:
        return NEVER if _closed(form, text) else MORE
    value, end = found
    calls = [_call_in(form, item, text[start:end]) for item in (value if isinstance(value, list) else [value])]
    whole = [call for call in calls if call is not None]
    return Read(tuple(whole), end) if whole and len(whole) == len(calls) else NEVER


def _object_head(form: CallForm, text: str) -> Head | Unread:
    """The arguments come behind the name, and behind the id where one is written: else nothing is known."""
    known: dict[str, JSON] = {}
    at = skip_space(text, 0)
    while text[at : at + 1] == ("," if known else "{") and (member := _member(text, at + 1)) is not None:
        key, valued = member
        if key == form.arguments_key:
            name, id = known.get(form.name_key), known.get(form.id_key or "")
            named = isinstance(name, str) and (form.id_key is None or isinstance(id, str))
            return Head(str(name), str(id) if id else None, valued) if named else MORE
        found = json_at(text, valued)
        if found is None:
            return MORE
        known[key], at = found[0], skip_space(text, found[1])
    return MORE


def _member(text: str, at: int) -> tuple[str, int] | None:
    """A key, and where its value begins."""
    found = json_at(text, skip_space(text, at))
    colon = skip_space(text, found[1]) if found else 0
    if found is None or not isinstance(found[0], str) or text[colon : colon + 1] != ":":
        return None
    return found[0], skip_space(text, colon + 1)


def _call_in(form: CallForm, item: JSON, written: str) -> ReadCall | None:
    if not isinstance(item, dict):
        return None
    name = item.get(form.name_key)
    arguments: JSON = next((item[key] for key in (form.arguments_key, "arguments", "parameters") if key in item), {})
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        return None
    id = item.get(form.id_key) if form.id_key else None
    return ReadCall(name, arguments, _as_written(arguments, written), id if isinstance(id, str) else None)


def _as_written(arguments: dict[str, JSON], written: str) -> str:
    """The piece of the sampled text that is these arguments, else their JSON."""
    at = written.find("{", 1)
    while at >= 0:
        found = json_at(written, at)
        if found is not None and found[0] == arguments:
            return written[at : found[1]]
        at = written.find("{", at + 1)
    return json.dumps(arguments, ensure_ascii=False)


def _named(form: CallForm, text: str, schemas: Schemas, final: bool) -> Read | Unread:
    head = _named_head(form, text)
    if not isinstance(head, Head):
        return head
    arguments = json_at(text, head.end)
    if arguments is None:
        return NEVER if _closed(form, text) or text[head.end : head.end + 1] not in ("", "{") else MORE
    value, end = arguments
    if not isinstance(value, dict):
        return NEVER
    return Read((ReadCall(head.name, value, text[head.end : end], head.id),), end)


def _named_head(form: CallForm, text: str) -> Head | Unread:
    start = skip_space(text, 0)
    found = _behind_name(form.between, text, start)
    if found is None:
        return MORE if len(text) - start < _LONGEST_NAME else NEVER
    place, _, behind = found
    if behind is SHORT:
        return MORE
    spelled = text[start:place].strip()
    if not _NAME.fullmatch(spelled):
        return NEVER
    id = spelled if form.by_id else _id_between(form.between, text[place:behind])
    inside = _IN_ID.fullmatch(spelled) if form.by_id else None
    return Head(inside["name"] if inside else spelled, id, skip_space(text, behind))


def _behind_name(between: str, text: str, start: int) -> tuple[int, str, int | Short] | None:
    """Between name and arguments a family may write an id; a model may leave it out."""
    if not between.strip():
        place = text.find("{", start)
        return (place, "{", place) if place >= 0 else None
    without_id = between.rpartition(ANYTHING)[2]
    return find([between] if without_id == between else [between, without_id], text, start)


def _id_between(between: str, written: str) -> str | None:
    """The call's id, where the family writes it in this literal."""
    before, wild, behind = between.partition(ANYTHING)
    if not wild or not written.startswith(before):
        return None
    return written[len(before) : len(written) - len(behind)].strip()


def _params(form: CallForm, text: str, schemas: Schemas, final: bool) -> Read | Unread:
    head = _params_head(form, text)
    if not isinstance(head, Head):
        return head
    at, params = head.end, list[Param]()
    while (one := param(form, text, at, schemas.get(head.name, {}), first=not params)) is not None:
        params.append(one)
        at = one.end
    if not _over(form, text, at, final):
        return MORE
    return Read((ReadCall(head.name, {one.key: one.value for one in params}, in_json(params)),), at)


def _params_head(form: CallForm, text: str) -> Head | Unread:
    start = skip_space(text, 0)
    named = find([form.between] if form.between.strip() else [form.param[0], form.closing, form.again], text, start)
    if named is None or named[2] is SHORT:
        so_far = text[start : named[0] if named else len(text)].strip()
        return MORE if _NAME.fullmatch(so_far or "_") else NEVER
    name, at = text[start : named[0]].strip(), named[2] if form.between.strip() else named[0]
    return Head(name, None, at) if _NAME.fullmatch(name) else NEVER


def _over(form: CallForm, text: str, at: int, final: bool) -> bool:
    """All its arguments are there: what closes it has come, or all that has come of it is its beginning."""
    if not form.closing.strip():
        return True
    place = skip_space(text, at)
    met = [meet(literal.strip(), text, place) for literal in (form.closing, form.again) if literal.strip()]
    return any(isinstance(end, int) for end in met) or (final and SHORT in met)


def _closed(form: CallForm, text: str) -> bool:
    """The call's closing has come: what is before it is all there will be. Brackets alone may stand in JSON, too."""
    if not form.closing.strip(BRACKETS):
        return False
    found = find([form.closing], text)
    return found is not None and found[2] is not SHORT


def json_at(text: str, at: int) -> tuple[JSON, int] | None:
    try:
        value, end = _JSON.raw_decode(text, at)
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError):
        return None
    return None if too_nested(value) else (value, end)


_READERS = {"object": _object, "named": _named, "params": _params}
_HEADS = {"object": _object_head, "named": _named_head, "params": _params_head}
