"""What a reply has said so far, and what of it was not told yet.

A call that was told while it was written, and then could not be read, stays one to the caller, who has heard of it.
Templates are shown what it is: text. So a reply may be two messages, as it was told and as it is written.
"""

from __future__ import annotations

from stenograph.core import JSON, CallDelta, Message, Note, ToolCall, Value


class Said(Value):
    """What some more ids added."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[CallDelta, ...] = ()


class Heard:
    def __init__(self, *, thinking: bool) -> None:
        self.content: list[str] = []
        """As it is written."""
        self.reasoning: list[str] | None = [] if thinking else None
        """None: no reasoning was begun."""
        self.calls: list[ToolCall] = []
        """Those that could be read."""
        self.notes: list[Note] = []
        self._told: list[str] = []
        """Content, without what was told as a call."""
        self._told_calls: list[ToolCall] = []
        self._arguments: list[str] = []
        """Of the call under way."""
        self._known = (0, 0)
        self._untold: list[CallDelta] = []

    def say(self, text: str, *, told: bool) -> None:
        self.content.append(text)
        if told:
            self._told.append(text)

    # -- calls ---------------------------------------------------------------------------------------------

    def begin_call(self, id: str, name: str) -> None:
        self._arguments = []
        self._untold.append(CallDelta(len(self._told_calls), id, name))

    def more_arguments(self, text: str) -> None:
        if not text:
            return
        self._arguments.append(text)
        place = len(self._told_calls)
        if self._untold and self._untold[-1].index == place:
            begun = self._untold.pop()
            self._untold.append(CallDelta(place, begun.id, begun.name, begun.arguments + text))
        else:
            self._untold.append(CallDelta(place, arguments=text))

    def end_call(self, id: str, name: str, arguments: dict[str, JSON] | None, *, read: bool) -> None:
        """`arguments`: None where they are no object. `read`: the call is whole."""
        written = "".join(self._arguments)
        call = ToolCall(id, name, written if arguments is None else arguments, written)
        self._told_calls.append(call)
        if read:
            self.calls.append(call)

    # -- out -----------------------------------------------------------------------------------------------

    def news(self) -> Said:
        """What came since this was asked before."""
        (content, reasoning), calls = self._known, tuple(self._untold)
        thought = self.reasoning or []
        self._known, self._untold = (len(self._told), len(thought)), []
        return Said("".join(self._told[content:]), "".join(thought[reasoning:]), calls)

    @property
    def reply(self) -> Message:
        return self._message(self._told, self._told_calls)

    @property
    def written(self) -> Message | None:
        """None: as it was told."""
        return None if len(self.calls) == len(self._told_calls) else self._message(self.content, self.calls)

    def _message(self, content: list[str], calls: list[ToolCall]) -> Message:
        return Message(
            role="assistant",
            content="".join(content) if content or not calls else None,
            reasoning=None if self.reasoning is None else "".join(self.reasoning),
            tool_calls=tuple(calls),
        )
