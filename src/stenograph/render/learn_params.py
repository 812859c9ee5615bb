"""How a template writes a call whose arguments stand one by one: what is around names, keys and values."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stenograph.core import JSON, Message, ToolCall
from stenograph.render.coded import ends_tag
from stenograph.render.grammar import CallForm
from stenograph.render.learner import Learner
from stenograph.render.marks import ANYTHING, KEY, common_start
from stenograph.render.telltales import IDS, KEYS, NAMES, VALUES, returned

BARE: tuple[tuple[JSON, str], ...] = ((4711, "4711"), (True, "true"), ([4711], "[4711]"))
"""Values that are no strings, and how they are written anywhere, capitals aside."""


def params_form(learner: Learner, one: str, two: str | None) -> CallForm | None:
    name_at, key_at, last_at = one.find(NAMES[0]), one.find(KEYS[0]), one.find(KEYS[1])
    value_at = one.find(VALUES[0], key_at)
    if not 0 <= name_at < key_at < value_at < last_at:
        return None
    before_first = one[name_at + len(NAMES[0]) : key_at]
    separator, behind_last = one[key_at + len(KEYS[0]) : value_at], one[last_at + len(KEYS[1]) :]
    between, behind_last = one[value_at + len(VALUES[0]) : last_at], behind_last.replace(KEYS[1], KEY)
    behind, joint, before = _split_params(
        before_first, between.replace(KEYS[0], KEY), behind_last.removeprefix(separator)
    )
    after_mark = separator + behind
    if not behind_last.startswith(after_mark):  # nothing is written otherwise than something
        after_mark = behind_last[: behind_last.find(behind.strip()) + len(behind.strip())]
    form = CallForm(
        kind="params",
        opening=one[:name_at],
        between=before_first.removesuffix(before).replace(NAMES[0], ANYTHING),
        param=(before, separator, behind),
        joint=joint,
        again="",
        closing=behind_last[len(after_mark) :],
        after_mark=after_mark,
    )
    return _with_second(_apart(_with_bare(learner, form)), two)


def _apart(form: CallForm) -> CallForm:
    """What has nothing between two arguments at all (one template forgets its comma) is not how its model writes."""
    kept_apart = form.joint.strip() or form.param[0].strip() or form.param[2].strip()
    return form if kept_apart else msgspec.structs.replace(form, joint=", ")


def _with_second(form: CallForm, two: str | None) -> CallForm:
    """Between two calls; and what is counted (`index="1"`) may be anything."""
    if two is None or NAMES[1] not in two:
        return form
    after_mark = form.after_mark.replace(KEY, KEYS[1])
    first_end = two.find(after_mark, two.find(KEYS[1])) + len(after_mark)
    second = two.find(NAMES[1])
    behind_name = two[second + len(NAMES[1]) : two.find(KEYS[0], second)].removesuffix(form.param[0])
    between = _differing([form.between, behind_name.replace(NAMES[1], ANYTHING)])
    return msgspec.structs.replace(form, again=two[first_end:second], between=between)


def _with_bare(learner: Learner, form: CallForm) -> CallForm:
    """How values that are no strings are written: without the quotes, or under another name of their type."""
    found = [_bare(learner, form, value, word) for value, word in BARE]
    known = [one for one in found if one is not None]
    if not known:
        return form
    separator, behind = _differing([one[0] for one in known]), _differing([one[1] for one in known])
    of_text, behind_text = form.param[1], form.param[2]
    quote = of_text.removeprefix(separator)
    if separator and quote and of_text.startswith(separator) and behind_text == quote + behind:
        return msgspec.structs.replace(form, param=(form.param[0], separator, behind), quote=quote)
    if (separator, behind) == (of_text, behind_text):
        return form
    return msgspec.structs.replace(form, bare=(separator, behind))


def _bare(learner: Learner, form: CallForm, value: JSON, word: str) -> tuple[str, str] | None:
    """What stands before such a value, and behind it."""
    call = ToolCall(IDS[0], NAMES[0], {KEYS[0]: value, KEYS[1]: VALUES[1]})
    region = learner.region(Message("assistant", tool_calls=(call,)), (returned(0),), tools=True) or ""
    _, _, behind_key = region.partition(KEYS[0])
    at = behind_key.lower().find(word)
    rest = behind_key[at + len(word) :].partition(KEYS[1])[0].replace(KEYS[0], KEY)
    if at < 0 or not rest.endswith(form.joint + form.param[0]):
        return None
    return behind_key[:at], rest.removesuffix(form.joint + form.param[0])


def _differing(texts: Sequence[str]) -> str:
    """One literal for all of them: where they differ, anything may stand."""
    start = common_start(texts)
    rests = [text[len(start) :] for text in texts]
    end = common_start([rest[::-1] for rest in rests])[::-1]
    return start if not any(rests) else start + ANYTHING + end


def _split_params(first: str, between: str, last: str) -> tuple[str, str, str]:
    """What ends an argument, what stands between two only (a comma), what begins one. The end is seen alone, too, in
    front of the `last`'s closing, and the beginning behind the `first`'s name; but letters that both share (`>\\n<`)
    could go to either. A bracket ends a tag."""
    earliest = len(between) - len(common_start([first[::-1], between[::-1]]))
    latest = len(common_start([between, last]))
    places = [place for place in range(earliest, latest + 1) if ends_tag(between[place - 1 : place])]
    end = min(earliest, latest) if not places else places[0]
    begin = max(end, earliest)
    return between[:end], between[end:begin], between[begin:]
