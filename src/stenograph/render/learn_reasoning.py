"""How a template writes reasoning: under which name it asks for it, and what it puts around it."""

from __future__ import annotations

import re

import msgspec

from stenograph.core import Message
from stenograph.render.coded import Coding, first_mark, last_mark
from stenograph.render.grammar import CallForm
from stenograph.render.learner import THINK_WORDS, Learner
from stenograph.render.marks import common_start
from stenograph.render.telltales import ASKED, IDS, NAMES, SAYS, THINKS, reply, returned
from stenograph.render.template import Style, Template

REASONING_KEYS = ("reasoning_content", "thinking", "reasoning", "tool_plan")
"""The last is what Cohere's templates call the reasoning before calls."""


def with_reasoning_key(learner: Learner) -> Style:
    """By which name the template asks for reasoning, or that it wants it among the content: where it writes some."""
    styles = [msgspec.structs.replace(learner.style, reasoning_key=key) for key in REASONING_KEYS]
    for style in (*styles, msgspec.structs.replace(learner.style, thinking_part=True)):
        renders = (learner.restyled(style).region(message, tail, tools=tools) for tools, message, tail in THINKING)
        if any(text is not None and THINKS in text and not PRINTED.search(text) for text in renders):
            return style
    return learner.style


PRINTED = re.compile(f"""["'] ?: ?["']{THINKS}""")
"""A template that knows nothing of parts prints what it was given, as Python or JSON has it."""


THINKING: tuple[tuple[bool, Message, tuple[Message, ...]], ...] = (
    (True, reply(thinks=True, calls=1), (returned(0),)),
    (False, reply(says=True, thinks=True), ()),
    (False, reply(says=True, thinks=True), (ASKED,)),
)
"""Where templates keep reasoning: inside a tool loop, on the last reply, always. (Tools?, reply, tail)"""


def think_markers(learner: Learner, call: CallForm | None, words: tuple[str, str] | None) -> tuple[str, str] | None:
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
            closings.append(_until_call(before.strip(), behind, call).strip())
    closing = common_start(closings) if closings else ""
    if not closing:
        return words
    if len(set(closings)) == 1:
        # what opens content anyway is no part of it; unless it is all there is, which a reply without reasoning closes
        closing = closing.removesuffix(opening_of_content(learner).strip()).strip() or closing
    opening = max(openings, key=len)
    return (opening or (words[0] if words else _opened_by_prompt(learner, closing)), closing)


def _until_call(opened: str, text: str, call: CallForm) -> str:
    """What stands before the opening of a call; all up to a name where that begins with the end of reasoning. Where a
    call without reasoning has an empty block of it, which `opened` opens, a mark closes that."""
    beyond = call.opening.strip().removeprefix(opened).lstrip()
    if opened and beyond != call.opening.strip() and text.strip().startswith(beyond) and (mark := first_mark(beyond)):
        return mark
    before, opening, _ = text.partition(call.opening.strip() or "{")
    named = min((place for name in (NAMES[0], IDS[0]) if (place := text.find(name)) >= 0), default=len(text))
    return before if before.strip() or not opening else text[:named]


def _opened_by_prompt(learner: Learner, closing: str) -> str:
    """Reasoning that stands right behind a prompt's header is opened by what this has beyond a plain reply's; by the
    last mark, where the prompt closes it again; or by the whole of it."""
    whole = learner.header()
    beyond = whole[len(common_start([whole, learner.turn(reply(says=True), (ASKED,)) or ""])) :].strip()
    header = whole.strip()
    if beyond and beyond != header:
        return beyond
    prompt = header or (learner.render([ASKED]) or "").strip()
    return last_mark(prompt.removesuffix(closing)) if prompt.endswith(closing) else header


def think_by_words(template: Template, coding: Coding) -> tuple[str, str] | None:
    """A template that names the markers is for a model that thinks, even where it drops all reasoning."""
    if THINK_WORDS[1] not in template.source:
        return None
    return coding.code(THINK_WORDS[0]), coding.code(THINK_WORDS[1])


def opening_of_content(learner: Learner) -> str:
    region = learner.region(reply(says=True), (ASKED,)) or learner.region(reply(says=True), ())
    return region.partition(SAYS)[0].strip() if region and SAYS in region else ""


def without_think(opening: str, think: tuple[str, str] | None) -> str:
    """An empty reasoning block before something else says nothing, nor does closing one that the prompt opened."""
    text = opening.lstrip()
    for word in think or ():
        text = text.removeprefix(word).lstrip() if word else text
    return text
