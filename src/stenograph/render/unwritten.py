"""What new messages say and the template writes nothing of: the model never sees it, so whoever sent it is told.

Most are found in a render that is made anyway, with placeholders for texts. What is missing there is shown once more in
plain letters, which come through whatever a template does to text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from stenograph.core import Message
from stenograph.errors import TemplateRefused
from stenograph.render.standin import Saying, marked_call, places, sayings

Write = Callable[[dict[int, Message]], str | None]
"""Renders, with some messages shown as others; None where that does not hold together."""


def unwritten(new: Mapping[int, Message], marked: str | None, write: Write) -> tuple[str, ...]:
    """Paths to it, such as `messages[3]`. `new`: by place; `marked`: the render with placeholders."""
    seen = {place.saying for place in places(marked or "")}
    missing = [one for place in new for one in _told(place, new[place]) if one not in seen]
    if not missing:
        return ()
    try:
        render = write({place: _in_letters(place, new[place]) for place in {one.message for one in missing}})
    except TemplateRefused:
        return ()
    if render is None:
        return ()
    text = render.lower()
    lost = [one for one in missing if _letters(one) not in text]
    return tuple(
        path for place in new for path in _paths(place, new[place], [one for one in lost if one.message == place])
    )


def _told(place: int, message: Message) -> list[Saying]:
    """Reasoning aside: templates drop what is past, as their models were trained to have it."""
    return [one for one in sayings(place, message) if one.kind != "r"]


def _letters(saying: Saying) -> str:
    return f"zqtold{saying.message}{saying.kind}{saying.number}zq"


def _in_letters(place: int, message: Message) -> Message:
    calls = (marked_call(call, _letters(Saying(place, "a", n))) for n, call in enumerate(message.tool_calls))
    return msgspec.structs.replace(
        message,
        content=_letters(Saying(place, "c")) if message.content and message.content.strip() else message.content,
        tool_calls=tuple(calls),
    )


def _paths(place: int, message: Message, lost: Sequence[Saying]) -> list[str]:
    whole = f"messages[{place}]"
    if lost and len(lost) == len(_told(place, message)):
        return [whole]
    kinds = {one.kind for one in lost}
    return [f"{whole}.{field}" for kind, field in (("c", "content"), ("a", "tool_calls")) if kind in kinds]
