"""How a template writes tool calls: as JSON objects, as names with JSON behind them, or argument by argument."""

from __future__ import annotations

import json
import re

import msgspec

from stenograph.core import JSON, Message
from stenograph.render.grammar import CallForm
from stenograph.render.learn_params import params_form
from stenograph.render.learn_reasoning import without_think
from stenograph.render.learner import Learner, until_next_turn
from stenograph.render.marks import ANYTHING, common_start
from stenograph.render.telltales import IDS, KEYS, NAMES, reply, returned
from stenograph.render.template import Style


def with_calls(learner: Learner) -> Style:
    """How the template wants to be shown a reply that calls: the way in which it writes the calls."""
    styles = [msgspec.structs.replace(learner.style, null_content=null) for null in (False, True)]
    return next((shown for style in styles if (shown := _shown(learner, style))), styles[0])


def _shown(learner: Learner, style: Style) -> Style | None:
    """Given as an object, does the template print the arguments as JSON (or one by one), or as Python would?"""
    with_text = msgspec.structs.replace(style, text_arguments=True)
    as_object, as_text = (_called(learner.restyled(one)) for one in (style, with_text))
    if as_text is not None and (as_object is None or f"'{KEYS[0]}'" in as_object):
        return with_text
    return style if as_object is not None else None


def _called(learner: Learner) -> str | None:
    """None: it refuses calls that are shown so, or leaves them out."""
    region = learner.region(reply(calls=1), (returned(0),), tools=True)
    return region if region is not None and KEYS[0] in region else None


def call_form(learner: Learner, words: tuple[str, str] | None) -> CallForm | None:
    one = _until_turn_ends(learner, reply(calls=1), (returned(0),))
    if one is None:
        return None
    two = _until_turn_ends(learner, reply(calls=2), (returned(0), returned(1)))
    if two is not None and not all(name in two or id in two for name, id in zip(NAMES, IDS, strict=True)):
        two = None
    form = _object_form(one, two) or _named_form(one, two) or params_form(learner, one, two)
    if form is None:
        return None
    closing = until_next_turn(form.closing, learner).rstrip()
    closed = closing[-1:] in learner.special and closing[-1] not in form.again
    return msgspec.structs.replace(
        form,
        opening=_any_id(without_think(form.opening, words)),
        again=_any_id(form.again),
        closing=closing[:-1] if closed else closing,
        turn_close=closing[-1] if closed else "",
        after_mark=_any_id(form.after_mark),
        between=_any_id(form.between),
    )


LATER_ID = re.compile(r', "\w+": "(?:' + "|".join(IDS) + ')"')
"""Some templates write a call's id into it once there is a result: what its model wrote has none."""


def _any_id(literal: str) -> str:
    for id in IDS:
        literal = literal.replace(id, ANYTHING)
    return literal


def _until_turn_ends(learner: Learner, message: Message, tail: tuple[Message, ...]) -> str | None:
    """The reply as it is written, with whatever closes its calls and the turn."""
    answered = learner.region(message, tail, tools=True)
    if answered is None or (NAMES[0] not in answered and IDS[0] not in answered) or KEYS[1] not in answered:
        return None
    text = answered.partition("zqreturned")[0]
    alone = learner.region(message, (), tools=True)
    if alone is None or KEYS[1] not in alone:
        return text
    if IDS[0] not in alone:
        text = LATER_ID.sub("", text)
    last = text.rindex(KEYS[1])
    return text[:last] + common_start([text[last:], alone[alone.rindex(KEYS[1]) :]])


def _json_at(text: str, at: int) -> tuple[JSON, int] | None:
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except ValueError:
        return None


def _braces(text: str, until: int) -> list[int]:
    return [place for place, char in enumerate(text[:until]) if char in "{["]


def _object_form(one: str, two: str | None) -> CallForm | None:
    name_at = one.find(NAMES[0])
    for start in _braces(one, name_at):
        found = _json_at(one, start)
        items = found[0] if found and isinstance(found[0], list) else [found[0]] if found else []
        if found is None or not items or not isinstance(items[0], dict):
            continue
        keys = {json.dumps(value): key for key, value in items[0].items()}
        name_key = keys.get(json.dumps(NAMES[0]))
        arguments_key = next(
            (key for key, value in items[0].items() if isinstance(value, dict) and KEYS[0] in value), None
        )
        if name_key is None or arguments_key is None:
            continue
        end = found[1]
        mark = one.index(KEYS[1], start) + len(KEYS[1])
        return CallForm(
            kind="object",
            opening=one[:start],
            again=_again_object(two, one[:start]) if two and not isinstance(found[0], list) else "",
            closing=one[end:],
            name_key=name_key,
            arguments_key=arguments_key,
            id_key=keys.get(json.dumps(IDS[0])),
            listed=isinstance(found[0], list),
            after_mark=one[mark:end],
        )
    return None


def _again_object(two: str, opening: str) -> str:
    first = _json_at(two, len(opening))
    second = two.find(NAMES[1])
    starts = [place for place in _braces(two, second) if first and place >= first[1] and _json_at(two, place)]
    return two[first[1] : starts[0]] if first and starts else ""


def _named_form(one: str, two: str | None) -> CallForm | None:
    by_id = NAMES[0] not in one
    names = IDS if by_id else NAMES
    name_at = one.find(names[0])
    behind = name_at + len(names[0])
    arguments_at = one.find("{", behind)
    found = _json_at(one, arguments_at) if name_at >= 0 and arguments_at >= 0 else None
    if found is None or not isinstance(found[0], dict) or KEYS[0] not in found[0]:
        return None
    mark = one.index(KEYS[1], arguments_at) + len(KEYS[1])
    form = CallForm(
        kind="named",
        opening=one[:name_at],
        between=one[behind:arguments_at],
        again=_again_named(two, names, one[behind:arguments_at]),
        closing=one[found[1] :],
        by_id=by_id,
        after_mark=one[mark : found[1]],
    )
    return _with_counted_ids(form)


def _again_named(two: str | None, names: tuple[str, ...], between: str) -> str:
    if two is None or names[1] not in two:
        return ""
    first = _json_at(two, two.find("{", two.find(names[0]) + len(names[0])))
    return two[first[1] : two.find(names[1])] if first else ""


def _with_counted_ids(form: CallForm) -> CallForm:
    """Kimi's `functions.NAME:0`: all of it is the call's id, by which the result will name it."""
    prefix = "functions."
    if not (form.opening.endswith(prefix) and form.between.startswith(":0")):
        return form
    return msgspec.structs.replace(
        form,
        opening=form.opening.removesuffix(prefix),
        again=form.again.removesuffix(prefix),
        between=form.between.removeprefix(":0"),
        by_id=True,
    )
