"""At which control tokens a model has to be stopped: the closes of a turn that its template writes itself."""

from __future__ import annotations

from stenograph.core import Value
from stenograph.render.coded import Coding
from stenograph.render.grammar import CallForm, Grammar
from stenograph.render.learner import Learner, until_next_turn
from stenograph.render.marks import common_start
from stenograph.render.telltales import KEYS, reply, returned
from stenograph.render.template import Template


class Closes(Value):
    """As coded characters; '' where there is none. They are not always the tokenizer's `eos_token`."""

    last: str
    """Behind an answer that is the last message."""
    answered: str
    """Behind one that a user has answered."""
    called: str
    """Behind calls."""

    @property
    def all(self) -> frozenset[str]:
        return frozenset(filter(None, (self.last, self.answered, self.called)))


def closes(template: Template, coding: Coding, grammar: Grammar) -> Closes:
    learner = Learner(template, coding, grammar.style)
    inside = {*(grammar.think or ()), grammar.content_opening}
    behind = learner.behind_answers()
    always = _last_special(until_next_turn(common_start(behind), learner), coding)
    last, answered = (always or _first_special(text, coding, inside) for text in behind)
    return Closes(last, answered, _close_of_calls(learner, coding, grammar.call, inside))


def _last_special(text: str, coding: Coding) -> str:
    """Where several stand behind every answer, the last one closes the turn, the others what is in it."""
    return next((char for char in reversed(text) if char in coding.special), "")


def _close_of_calls(learner: Learner, coding: Coding, call: CallForm | None, inside: set[str]) -> str:
    if call is None or call.turn_close:
        return call.turn_close if call else ""
    region = learner.region(reply(calls=1), (returned(0),), tools=True) or ""
    behind = region.partition(KEYS[1])[2].partition("zqreturned")[0]
    return _first_special(behind, coding, inside | {call.closing, call.after_mark})


def _first_special(text: str, coding: Coding, inside: set[str]) -> str:
    """The first one that does not belong to what a reply itself is written with."""
    own = set("".join(inside))
    return next((char for char in text if char in coding.special and char not in own), "")
