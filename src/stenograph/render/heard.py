"""What a reply has said so far, and what of it was not told yet."""

from __future__ import annotations

from stenograph.core import CallDelta, Message, Note, ToolCall, Value


class Said(Value):
    """What some more ids added."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[CallDelta, ...] = ()


class Heard:
    def __init__(self, *, thinking: bool) -> None:
        self.content: list[str] = []
        self.reasoning: list[str] | None = [] if thinking else None
        """None: no reasoning was begun."""
        self.calls: list[ToolCall] = []
        self.notes: list[Note] = []
        self._told = (0, 0)
        self._untold: list[CallDelta] = []

    def call(self, call: ToolCall, written: str) -> None:
        """`written`: its arguments."""
        self._untold.append(CallDelta(len(self.calls), call.id, call.name, written))
        self.calls.append(call)

    def news(self) -> Said:
        """What came since this was asked before."""
        (content, reasoning), calls = self._told, tuple(self._untold)
        thought = self.reasoning or []
        self._told, self._untold = (len(self.content), len(thought)), []
        return Said("".join(self.content[content:]), "".join(thought[reasoning:]), calls)

    @property
    def reply(self) -> Message:
        return Message(
            role="assistant",
            content="".join(self.content) if self.content or not self.calls else None,
            reasoning=None if self.reasoning is None else "".join(self.reasoning),
            tool_calls=tuple(self.calls),
        )
