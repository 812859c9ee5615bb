"""A template at work on replies of every shape: what it writes in an assistant's turn."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from stenograph.core import Message
from stenograph.errors import TemplateRefused
from stenograph.render.coded import Coding
from stenograph.render.marks import common_start, meet, skip_space
from stenograph.render.telltales import ASKED, TOOLS
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
