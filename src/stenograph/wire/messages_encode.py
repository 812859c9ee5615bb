"""Events to Anthropic Messages, as JSON and as SSE. `tests/wire/test_messages_laws.py` proves that both say the same.

A stream reads: `message_start`; the blocks, one after the other; `message_delta` with the reason of the stop and the
whole usage; `message_stop`. Silence is filled with `ping`, as Anthropic does, once the message has started; before it,
a comment, which no client takes for an event out of order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from stenograph.core import Closed, Done, Event, FinishReason, Opened, Piece
from stenograph.errors import StenographError
from stenograph.wire import messages_answer as answer
from stenograph.wire import sse
from stenograph.wire.errors import anthropic_error
from stenograph.wire.fold import fold
from stenograph.wire.messages_blocks import Blocks, Thinking, whole

_ENCODER = msgspec.json.Encoder()
_STOPS: dict[FinishReason, answer.StopReason | None] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "abort": None,
}


class MessagesEncoder:
    def __init__(self, thinking: Thinking) -> None:
        self._thinking: Thinking = thinking
        self._blocks: Blocks | None = None
        """Of a stream that has begun."""
        self._ending = answer.Ending(None, None)

    def json(self, events: Sequence[Event]) -> bytes:
        folded = fold(events)
        (choice,) = folded.choices
        blocks, ending = Blocks(self._thinking, choice.turn_id), _ending(choice.closed)
        grown = [event for piece in choice.pieces for event in blocks.piece(piece)]
        message = answer.Message(
            id=_id(folded.opened),
            model=folded.opened.model,
            content=whole([*grown, *blocks.close()]),
            stop_reason=ending.stop_reason,
            stop_sequence=ending.stop_sequence,
            usage=_usage(folded.done),
        )
        return _ENCODER.encode(message)

    def sse(self, event: Event) -> bytes:
        match event:
            case Opened():
                self._blocks = Blocks(self._thinking, event.turn_ids[0])
                return _frames([_start(event)])
            case Piece():
                return _frames(self._begun().piece(event))
            case Closed():
                self._ending = _ending(event)
                return _frames(self._begun().close())
            case Done():
                return _frames([answer.MessageDelta(self._ending, _usage(event)), answer.MessageStop()])

    def sse_idle(self) -> bytes:
        return _frames([answer.Ping()]) if self._blocks is not None else sse.KEEP_ALIVE

    def _begun(self) -> Blocks:
        if self._blocks is None:
            raise ValueError("a stream begins with Opened")
        return self._blocks

    def sse_error(self, error: StenographError) -> bytes:
        return sse.named("error", anthropic_error(error))


def _frames(events: Iterable[answer.StreamEvent]) -> bytes:
    return b"".join(sse.named(str(event.__struct_config__.tag), _ENCODER.encode(event)) for event in events)


def _start(opened: Opened) -> answer.MessageStart:
    return answer.MessageStart(
        answer.Message(
            id=_id(opened),
            model=opened.model,
            content=[],
            stop_reason=None,
            stop_sequence=None,
            usage=answer.Usage(len(opened.prompt), 0),
        )
    )


def _id(opened: Opened) -> str:
    return f"msg_{opened.call_id}"


def _ending(closed: Closed) -> answer.Ending:
    """A stop at an id is the model's own end to a caller who can only name texts."""
    if closed.finish_reason == "stop" and isinstance(closed.stop_reason, str):
        return answer.Ending("stop_sequence", closed.stop_reason)
    return answer.Ending(_STOPS[closed.finish_reason], None)


def _usage(done: Done) -> answer.Usage:
    cached = done.cached_tokens or 0
    return answer.Usage(done.prompt_tokens - cached, done.completion_tokens, cached)
