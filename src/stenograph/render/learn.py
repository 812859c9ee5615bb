"""A grammar from a template: show it replies of every shape, and look at what it writes around what they say.

So a family is read by what its own template writes, and one that nobody has seen before is read like any other.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence

import msgspec

from stenograph.core import JSON, Message, ToolCall
from stenograph.errors import TemplateRefused
from stenograph.render.coded import Coding, ends_tag
from stenograph.render.grammar import CallForm, Grammar
from stenograph.render.marks import ANYTHING, common_start, meet, skip_space
from stenograph.render.template import Style, Template, as_template_sees

NOON = datetime.datetime(2000, 1, 1, 12)
ASKED = Message("user", "zqasked")
SAYS, THINKS = "zqsays", "zqthinks"
NAMES = ("zqone", "zqtwo")
IDS = ("zqcallnr1", "zqcallnr2")
KEYS, VALUES = ("zqkey", "zqlast"), ("zqval", "")
"""The last argument is empty, as the one by which a stand-in's arguments are marked."""
BARE: tuple[tuple[JSON, str], ...] = ((4711, "4711"), (True, "true"), ([4711], "[4711]"))
"""Values that are no strings, and how they are written anywhere, capitals aside."""
SHORTEST_CLOSE = 3
"""Letters: less than that is punctuation, at which nobody wants to be stopped."""
REASONING_KEYS = ("reasoning_content", "thinking", "reasoning")
THINK_WORDS = ("<think>", "</think>")


def returned(place: int) -> Message:
    return Message("tool", "zqreturned", tool_call_id=IDS[place], name=NAMES[place])


def tool(name: str) -> dict[str, JSON]:
    argument = {"type": "string", "description": "zqtext"}
    parameters = {"type": "object", "properties": dict.fromkeys(KEYS, argument), "required": [KEYS[0]]}
    return {"type": "function", "function": {"name": name, "description": "zqtext", "parameters": parameters}}


TOOLS = (tool(NAMES[0]), tool(NAMES[1]))


def reply(*, says: bool = False, thinks: bool = False, calls: int = 0) -> Message:
    made = tuple(ToolCall(IDS[n], NAMES[n], dict(zip(KEYS, VALUES, strict=True))) for n in range(calls))
    return Message("assistant", SAYS if says else None, THINKS if thinks else None, made)


class Learner:
    """Renders shapes of replies; None where the template refuses one."""

    def __init__(self, template: Template, coding: Coding, style: Style) -> None:
        self._template = template
        self._coding = coding
        self.style = style

    def render(self, messages: Sequence[Message], *, tools: bool = False, generate: bool = True) -> str | None:
        seen = [as_template_sees(message, self.style) for message in messages]
        try:
            text = self._template.render(seen, TOOLS if tools else (), {}, generate=generate, now=NOON)
        except TemplateRefused:
            return None
        return self._coding.code(text)

    def region(self, message: Message, tail: Sequence[Message], *, tools: bool = False) -> str | None:
        """What is written behind the opening of the assistant's turn: the reply, its close, and the tail."""
        asked = self.render([ASKED], tools=tools, generate=False)
        prompt = self.render([ASKED], tools=tools)
        whole = self.render([ASKED, message, *tail], tools=tools, generate=bool(tail))
        if prompt is None or whole is None:
            return None
        region = whole[len(common_start([asked or prompt, prompt, whole])) :]
        header = prompt[len(common_start([asked or prompt, prompt])) :]
        return _behind_header(region, header, self._coding)

    @property
    def special(self) -> frozenset[str]:
        return self._coding.special

    def restyled(self, style: Style) -> Learner:
        return Learner(self._template, self._coding, style)


def _behind_header(region: str, header: str, coding: Coding) -> str:
    """The header that a prompt ends in may hold more than a past turn's: reasoning that it has opened."""
    words = [coding.code(word) for word in THINK_WORDS]
    for shorter in (header, *(header.rstrip().removesuffix(word) for word in words)):
        end = meet(shorter.strip(), region, skip_space(region, 0))
        if isinstance(end, int):
            return region[end:]
    return region[len(common_start([region, header])) :]


def learn(template: Template, coding: Coding) -> Grammar:
    learner = Learner(template, coding, Style())
    learner = learner.restyled(Style(text_arguments=_wants_text(learner)))
    learner = learner.restyled(_with_reasoning_key(learner))
    words = _think_by_words(template, coding)
    call = _call_form(learner, words)
    think = _think(learner, call, words)
    spoken = _without_think(_opening_of_content(learner), think)
    text_close = _text_close(learner)
    return Grammar(
        name=f"learned-{call.kind}" if call else "none",
        think=think,
        content_opening=spoken,
        call=call and _of_calls_alone(call, think, text_close),
        text_close=text_close,
        style=learner.style,
    )


def _text_close(learner: Learner) -> str:
    """The text behind an answer that is there whatever comes next, up to the control token that closes the turn;
    '' where there is only that token."""
    tails: tuple[tuple[Message, ...], ...] = ((ASKED,), ())
    regions = [learner.region(reply(says=True), tail) for tail in tails]
    behind = [region.partition(SAYS)[2] for region in regions if region is not None and SAYS in region]
    shared = common_start(behind).strip() if len(behind) == len(tails) else ""
    close = shared[: max((place for place, char in enumerate(shared) if char in learner.special), default=len(shared))]
    return close if sum(char not in learner.special for char in close) >= SHORTEST_CLOSE else ""


# -------------------------------------------------------------------------------------------------------- reasoning


def _with_reasoning_key(learner: Learner) -> Style:
    """By which name the template asks for reasoning: the one under which it writes some."""
    for key in REASONING_KEYS:
        style = msgspec.structs.replace(learner.style, reasoning_key=key)
        renders = (learner.restyled(style).region(message, tail, tools=tools) for tools, message, tail in THINKING)
        if any(text is not None and THINKS in text for text in renders):
            return style
    return learner.style


THINKING: tuple[tuple[bool, Message, tuple[Message, ...]], ...] = (
    (True, reply(thinks=True, calls=1), (returned(0),)),
    (False, reply(says=True, thinks=True), ()),
    (False, reply(says=True, thinks=True), (ASKED,)),
)
"""Where templates keep reasoning: inside a tool loop, on the last reply, always. (Tools?, reply, tail)"""


def _think(learner: Learner, call: CallForm | None, words: tuple[str, str] | None) -> tuple[str, str] | None:
    """What stands before reasoning, and what closes it whatever comes behind it."""
    openings, closings = [], []
    for tools, message, tail in THINKING:
        region = learner.region(message, tail, tools=tools)
        if region is None or THINKS not in region:
            continue
        before, _, behind = region.partition(THINKS)
        openings.append(before.strip())
        if message.content:
            closings.append(behind.partition(SAYS)[0].strip())
        elif call is not None:
            closings.append(_until_call(behind, call).strip())
    closing = common_start(closings) if closings else ""
    if not closing:
        return words
    if len(set(closings)) == 1:
        # what opens content anyway is no part of it; unless it is all there is, which a reply without reasoning closes
        closing = closing.removesuffix(_opening_of_content(learner).strip()).strip() or closing
    opening = max(openings, key=len)
    return (opening or (words[0] if words else _opened_by_prompt(learner)), closing)


def _until_call(text: str, call: CallForm) -> str:
    """What stands before the opening of a call; all up to a name where that begins with the end of reasoning."""
    before, opening, _ = text.partition(call.opening.strip() or "{")
    named = min((place for name in (NAMES[0], IDS[0]) if (place := text.find(name)) >= 0), default=len(text))
    return before if before.strip() or not opening else text[:named]


def _opened_by_prompt(learner: Learner) -> str:
    """Reasoning that stands right behind the header of a turn is opened by the whole of it."""
    asked, prompt = learner.render([ASKED], generate=False), learner.render([ASKED])
    return prompt[len(common_start([asked, prompt])) :].strip() if asked is not None and prompt is not None else ""


def _think_by_words(template: Template, coding: Coding) -> tuple[str, str] | None:
    """A template that names the markers is for a model that thinks, even where it drops all reasoning."""
    if THINK_WORDS[1] not in template.source:
        return None
    return coding.code(THINK_WORDS[0]), coding.code(THINK_WORDS[1])


def _opening_of_content(learner: Learner) -> str:
    region = learner.region(reply(says=True), (ASKED,)) or learner.region(reply(says=True), ())
    return region.partition(SAYS)[0].strip() if region and SAYS in region else ""


def _without_think(opening: str, think: tuple[str, str] | None) -> str:
    """An empty reasoning block before something else says nothing, nor does closing one that the prompt opened."""
    text = opening.lstrip()
    for word in think or ():
        text = text.removeprefix(word).lstrip() if word else text
    return text


# ------------------------------------------------------------------------------------------------------------ calls


def _of_calls_alone(form: CallForm, think: tuple[str, str] | None, text_close: str) -> CallForm:
    """Without what belongs to reasoning before the calls, and to the turn behind them."""
    opening, closing = _without_think(form.opening, think), form.closing.removesuffix(text_close)
    return msgspec.structs.replace(form, opening=opening, closing=closing)


def _wants_text(learner: Learner) -> bool:
    """Given as an object, does the template print the arguments as JSON (or one by one), or as Python would?"""
    as_object = learner.region(reply(calls=1), (returned(0),), tools=True)
    as_text = learner.restyled(Style(text_arguments=True)).region(reply(calls=1), (returned(0),), tools=True)
    if as_text is None:
        return False
    return as_object is None or f"'{KEYS[0]}'" in as_object


def _call_form(learner: Learner, words: tuple[str, str] | None) -> CallForm | None:
    one = _until_turn_ends(learner, reply(calls=1), (returned(0),))
    if one is None:
        return None
    two = _until_turn_ends(learner, reply(calls=2), (returned(0), returned(1)))
    if two is not None and not all(name in two or id in two for name, id in zip(NAMES, IDS, strict=True)):
        two = None
    form = _object_form(one, two) or _named_form(one, two) or _params_form(learner, one, two)
    if form is None:
        return None
    closing = form.closing.rstrip()
    closed = closing[-1:] in learner.special
    return msgspec.structs.replace(
        form,
        opening=_any_id(_without_think(form.opening, words)),
        again=_any_id(form.again),
        closing=closing[:-1] if closed else closing,
        turn_close=closing[-1] if closed else "",
        after_mark=_any_id(form.after_mark),
        between=_any_id(form.between),
    )


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


def _params_form(learner: Learner, one: str, two: str | None) -> CallForm | None:
    name_at, key_at, last_at = one.find(NAMES[0]), one.find(KEYS[0]), one.find(KEYS[1])
    value_at = one.find(VALUES[0], key_at)
    if not 0 <= name_at < key_at < value_at < last_at:
        return None
    before_first = one[name_at + len(NAMES[0]) : key_at]
    separator, behind_last = one[key_at + len(KEYS[0]) : value_at], one[last_at + len(KEYS[1]) :]
    behind, joint, before = _split_params(
        before_first, one[value_at + len(VALUES[0]) : last_at], behind_last.removeprefix(separator)
    )
    after_mark = separator + behind
    if not behind_last.startswith(after_mark):  # nothing is written otherwise than something
        after_mark = behind_last[: behind_last.find(behind.strip()) + len(behind.strip())]
    form = CallForm(
        kind="params",
        opening=one[:name_at],
        between=before_first.removesuffix(before),
        param=(before, separator, behind),
        joint=joint,
        again="",
        closing=behind_last[len(after_mark) :],
        after_mark=after_mark,
    )
    return _with_second(_with_bare(learner, form), two)


def _with_second(form: CallForm, two: str | None) -> CallForm:
    """Between two calls; and what is counted (`index="1"`) may be anything."""
    if two is None or NAMES[1] not in two:
        return form
    first_end = two.find(form.after_mark, two.find(KEYS[1])) + len(form.after_mark)
    second = two.find(NAMES[1])
    behind_name = two[second + len(NAMES[1]) : two.find(KEYS[0], second)].removesuffix(form.param[0])
    between = _differing([form.between, behind_name])
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
    rest = behind_key[at + len(word) :].partition(KEYS[1])[0]
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
