"""A grammar from a template: show it replies of every shape, and look at what it writes around what they say.

So a family is read by what its own template writes, and one that nobody has seen before is read like any other.
"""

from __future__ import annotations

import msgspec

from stenograph.render.coded import Coding
from stenograph.render.grammar import CallForm, Grammar
from stenograph.render.learn_calls import call_form, with_calls
from stenograph.render.learn_reasoning import (
    opening_of_content,
    think_by_words,
    think_markers,
    with_reasoning_key,
    without_think,
)
from stenograph.render.learn_speakers import with_instructions, with_reply_names
from stenograph.render.learner import Learner
from stenograph.render.marks import common_start
from stenograph.render.template import Style, Template

SHORTEST_CLOSE = 3
"""Letters: less than that is punctuation, at which nobody wants to be stopped."""


def learn(template: Template, coding: Coding) -> Grammar:
    learner = Learner(template, coding, Style())
    learner = learner.restyled(with_calls(learner))
    learner = learner.restyled(with_reasoning_key(learner))
    learner = learner.restyled(with_instructions(learner))
    learner = learner.restyled(with_reply_names(learner))
    words = think_by_words(template, coding)
    call = call_form(learner, words)
    think = think_markers(learner, call, words)
    spoken = without_think(opening_of_content(learner), think)
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
    shared = common_start(learner.behind_answers()).strip()
    close = shared[: max((place for place, char in enumerate(shared) if char in learner.special), default=len(shared))]
    return close if sum(char not in learner.special for char in close) >= SHORTEST_CLOSE else ""


def _of_calls_alone(form: CallForm, think: tuple[str, str] | None, text_close: str) -> CallForm:
    """Without what belongs to reasoning before the calls, and to the turn behind them."""
    opening, closing = without_think(form.opening, think), form.closing.removesuffix(text_close)
    return msgspec.structs.replace(form, opening=opening, closing=closing)
