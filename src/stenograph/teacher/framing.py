"""The student's first prompt as a teacher in another context is shown it: other instructions, a hint, other tools.
Pure."""

from __future__ import annotations

import string
from collections.abc import Mapping

import msgspec

from stenograph.core import JSON, Conversation, Framing, Message
from stenograph.errors import CallerError
from stenograph.render.template import head_length


def filled(framing: Framing, metadata: Mapping[str, JSON]) -> Framing:
    """`$name` is the session's metadata of that name; `$$` is a dollar."""
    return msgspec.structs.replace(
        framing, system=_filled("system", framing.system, metadata), hint=_filled("hint", framing.hint, metadata)
    )


def _filled(field: str, text: str | None, metadata: Mapping[str, JSON]) -> str | None:
    try:
        return None if text is None else string.Template(text).substitute(metadata)
    except KeyError as error:
        raise CallerError(f"the teacher's {field} wants ${error.args[0]}, which its metadata does not have") from error
    except ValueError as error:
        raise CallerError(f"the teacher's {field}: {error} (a dollar is written $$)") from error


def framed(conversation: Conversation, framing: Framing) -> Conversation:
    """`framing` is filled in already."""
    messages = list(conversation.messages)
    if framing.system is not None:
        messages[: head_length(messages)] = [Message("system", framing.system)]
    if framing.hint is not None:
        place = _last_of_user(messages)
        asked = messages[place]
        text = f"{asked.content}\n\n{framing.hint}" if asked.content else framing.hint
        messages[place] = msgspec.structs.replace(asked, content=text)
    tools = conversation.tools if framing.tools is None else framing.tools
    return msgspec.structs.replace(conversation, messages=tuple(messages), tools=tools)


def _last_of_user(messages: list[Message]) -> int:
    places = [place for place, message in enumerate(messages) if message.role == "user"]
    if not places:
        raise CallerError("the teacher's hint goes behind a message of the user, and there is none")
    return places[-1]
