"""A template at work on replies of every shape: what it writes in an assistant's turn."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from stenograph.core import Message
from stenograph.errors import TemplateRefused
from stenograph.render.coded import Coding
from stenograph.render.marks import common_start, meet, skip_space
from stenograph.render.telltales import ASKED, SAYS, TOOLS, reply
from stenograph.render.template import Style, Template, all_seen

NOON = datetime.datetime(2000, 1, 1, 12)
THINK_WORDS = ("<think>", "</think>")


class Learner:
    """Renders shapes of replies; None where the template refuses one."""

    def __init__(self, template: Template, coding: Coding, style: Style) -> None:
        self._template = template
        self._coding = coding
        self.style = style

    def render(self, messages: Sequence[Message], *, tools: bool = False, generate: bool = True) -> str | None:
        seen = all_seen(messages, self.style)
        try:
            text = self._template.render(seen, TOOLS if tools else (), {}, generate=generate, now=NOON)
        except TemplateRefused:
            return None
        return self._coding.code(text)

    def region(self, message: Message, tail: Sequence[Message], *, tools: bool = False) -> str | None:
        """What is written behind the opening of the assistant's turn: the reply, its close, and the tail."""
        turned = self._turned(message, tail, tools)
        if turned is None:
            return None
        header, region = turned
        behind = _behind_header(region, header, self._coding)
        if behind is not None:
            return behind
        plain = self._turned(reply(says=True), (ASKED,), tools)
        return region[len(common_start([header, region, plain[1] if plain else region])) :]

    def turn(self, message: Message, tail: Sequence[Message], *, tools: bool = False) -> str | None:
        """The same with its opening."""
        turned = self._turned(message, tail, tools)
        return turned and turned[1]

    def behind_answers(self) -> list[str]:
        """What stands behind an answer that is last, and behind one that a user has answered."""
        regions = (self.region(reply(says=True), tail) for tail in ((), (ASKED,)))
        return [(region or "").partition(SAYS)[2] for region in regions]

    def header(self, *, tools: bool = False) -> str:
        """With which a prompt opens the assistant's turn."""
        asked, prompt = self.render([ASKED], tools=tools, generate=False), self.render([ASKED], tools=tools)
        return prompt[len(common_start([asked, prompt])) :] if asked is not None and prompt is not None else ""

    def _turned(self, message: Message, tail: Sequence[Message], tools: bool) -> tuple[str, str] | None:
        """How a prompt opens the assistant's turn, and the turn as history has it, opening and all."""
        asked = self.render([ASKED], tools=tools, generate=False)
        prompt = self.render([ASKED], tools=tools)
        whole = self.render([ASKED, message, *tail], tools=tools, generate=bool(tail))
        if prompt is None or whole is None:
            return None
        region = whole[len(common_start([asked or prompt, prompt, whole])) :]
        question = ASKED.content or ""
        if region.count(question) > sum(one is ASKED for one in tail):  # what is no longer last is written otherwise
            return prompt.rpartition(question)[2], region.partition(question)[2]
        return prompt[len(common_start([asked or prompt, prompt])) :], region

    @property
    def special(self) -> frozenset[str]:
        return self._coding.special

    def restyled(self, style: Style) -> Learner:
        return Learner(self._template, self._coding, style)


def until_next_turn(text: str, learner: Learner) -> str:
    """What stands behind a reply, without the opening of another turn that may follow there whatever comes. Where it
    begins in a template that always writes it cannot be told: there the first control token that stands behind an
    answer, too, is the last that is sure to be the reply's."""
    header, special = learner.header(), learner.special
    opening = next((char for char in header if char in special), None)
    if opening or header:
        return text.partition(opening)[0] if opening else text
    closing = {char for char in common_start(learner.behind_answers()) if char in special}
    first = next((place for place, char in enumerate(text) if char in closing), len(text))
    return text[: first + 1]


def _behind_header(region: str, header: str, coding: Coding) -> str | None:
    """The header that a prompt ends in may hold more than a past turn's: reasoning that it has opened."""
    words = [coding.code(word) for word in THINK_WORDS]
    for shorter in (header, *(header.rstrip().removesuffix(word) for word in words)):
        end = meet(shorter.strip(), region, skip_space(region, 0))
        if isinstance(end, int):
            return region[end:]
    return None
