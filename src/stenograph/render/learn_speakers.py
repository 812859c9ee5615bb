"""What a template makes of who speaks: of the developer, in whose name agents of OpenAI's instruct, and of names."""

from __future__ import annotations

import msgspec

from stenograph.core import Message
from stenograph.render.learner import Learner
from stenograph.render.telltales import ASKED, reply, returned
from stenograph.render.template import Style

TOLD, ADDED = "zqtold", "zqadded"
DEVELOPER = Message("developer", TOLD)
BOTH = (Message("system", TOLD), Message("developer", ADDED))
NAMED = "zqname"


def with_instructions(learner: Learner) -> Style:
    """What loses nothing is left as it is; what nothing would help, too."""
    as_system = _if_it_helps(learner, msgspec.structs.replace(learner.style, developer="system"), (DEVELOPER,))
    return _if_it_helps(learner.restyled(as_system), msgspec.structs.replace(as_system, one_head=True), BOTH)


def _if_it_helps(learner: Learner, other: Style, told: tuple[Message, ...]) -> Style:
    return other if not _written(learner, told) and _written(learner.restyled(other), told) else learner.style


def _written(learner: Learner, told: tuple[Message, ...]) -> bool:
    text = learner.render([*told, ASKED]) or ""
    return all((message.content or "") in text for message in told)


def with_reply_names(learner: Learner) -> Style:
    said = ((False, reply(says=True), ASKED), (True, reply(calls=1), returned(0)))
    minds = any(_minds_its_name(learner, message, behind, tools=tools) for tools, message, behind in said)
    return msgspec.structs.replace(learner.style, reply_names=minds)


def _minds_its_name(learner: Learner, message: Message, behind: Message, *, tools: bool) -> bool:
    named = msgspec.structs.replace(message, name=NAMED)
    renders = [learner.render([ASKED, one, behind], tools=tools) for one in (message, named)]
    return renders[0] != renders[1]
