"""As whom a template is shown the developer: agents of OpenAI's instruct in his name, and few templates know him."""

from __future__ import annotations

import msgspec

from stenograph.core import Message
from stenograph.render.learner import Learner
from stenograph.render.telltales import ASKED
from stenograph.render.template import Style

TOLD, ADDED = "zqtold", "zqadded"
DEVELOPER = Message("developer", TOLD)
BOTH = (Message("system", TOLD), Message("developer", ADDED))


def with_instructions(learner: Learner) -> Style:
    """What loses nothing is left as it is; what nothing would help, too."""
    as_system = _if_it_helps(learner, msgspec.structs.replace(learner.style, developer="system"), (DEVELOPER,))
    return _if_it_helps(learner.restyled(as_system), msgspec.structs.replace(as_system, one_head=True), BOTH)


def _if_it_helps(learner: Learner, other: Style, told: tuple[Message, ...]) -> Style:
    return other if not _written(learner, told) and _written(learner.restyled(other), told) else learner.style


def _written(learner: Learner, told: tuple[Message, ...]) -> bool:
    text = learner.render([*told, ASKED]) or ""
    return all((message.content or "") in text for message in told)
