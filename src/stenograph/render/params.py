"""One argument of a call whose arguments are written one by one: its key, its value, and where the text goes on."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence

from stenograph.core import JSON, Value
from stenograph.render.grammar import CallForm
from stenograph.render.marks import KEY, SHORT, begun, find, meet, skip_space
from stenograph.render.values import LETTERS, is_text, loose, typed, value_end, worth

CDATA = ("<![CDATA[", "]]>")
"""Around values that hold what would end a tag, as XML has it (and MiniCPM5)."""


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
    behind = behind.replace(KEY, key)
    ended = _ended(form, text, valued, behind.strip())
    if ended < 0:
        return None
    value = _uncovered(_unspaced(text[valued:ended], between, behind))
    end = ended + len(behind.strip())
    sure = behind.strip() not in LETTERS or _goes_on(form, text, end) is Met.WHOLE
    if form.bare is not None:
        return Param(key, value if as_text else worth(value), end, sure=sure)
    return Param(key, typed(value, schemas.get(key)), end, sure=sure)


def _ended(form: CallForm, text: str, at: int, behind: str) -> int:
    """Where a value ends. A quote that is a letter may stand in it, too: some templates escape none."""
    if text.startswith(CDATA[0], skip_space(text, at)):
        at = text.find(CDATA[1], at)
    ended = text.find(behind, at) if at >= 0 else -1
    while ended >= 0 and behind in LETTERS and _goes_on(form, text, ended + len(behind)) is None:
        ended = text.find(behind, ended + 1)
    return ended


def _uncovered(value: str) -> str:
    inside = value.strip()
    if inside.startswith(CDATA[0]) and inside.endswith(CDATA[1]):
        return inside[len(CDATA[0]) : -len(CDATA[1])]
    return value


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
    if not as_text or (form.bare is None and not is_text(schemas.get(key))):
        return None
    before, closing = _around(form.param[1], form.param[2].replace(KEY, key))
    value = text[valued:]
    if len(value) < len(before) or _may_be_covered(value):
        return None
    held = max(begun(closing, value), begun(closing.lstrip(), value))
    return key, value.removeprefix(before)[: max(0, len(value.removeprefix(before)) - held)]


def _may_be_covered(value: str) -> bool:
    start = value.lstrip()
    return start.startswith(CDATA[0]) or CDATA[0].startswith(start)


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


def _loose_param(form: CallForm, text: str, key: str, at: int, schema: Mapping[str, JSON] | None) -> Param | None:
    """A value ends by itself: with its quote, with its bracket, or where the next thing begins."""
    quotes = ['"', "'"] if form.quote in LETTERS else [form.quote]
    start = skip_space(text, at)
    end = value_end(text, start, quotes)
    if end is not None and _goes_on(form, text, end) is None and text[start] in quotes and text[start] in LETTERS:
        end = _ended(form, text, end, text[start]) + 1 or None
    if end is not None and (met := _goes_on(form, text, end)):
        return Param(key, loose(text[start:end], quotes), end, sure=met is Met.WHOLE)
    words = (form.joint.strip(), form.again.strip(), form.closing.strip())
    ends = [place for word in words if word and (place := text.find(word, at)) >= 0]
    if form.quote or not ends:
        return None
    return Param(key, typed(text[at : min(ends)], schema), min(ends), sure=False)


def _goes_on(form: CallForm, text: str, at: int) -> Met | None:
    place = skip_space(text, at)
    literals = (form.joint, form.closing, form.again, form.param[2].strip(LETTERS))
    ends = [meet(word.strip(), text, place) for word in literals if word.strip()]
    if any(isinstance(end, int) for end in ends):
        return Met.WHOLE
    return Met.SO_FAR if SHORT in ends else None
