"""What is sampled, as the blocks of a Messages answer: opened when a kind of speech begins, closed when another does.

A stream sends these events as they come; a JSON answer is what they add up to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec

from stenograph.core import CallDelta, Piece
from stenograph.wire import messages_answer as answer
from stenograph.wire import messages_signature as signature
from stenograph.wire.strict_json import StrictJson

Thinking: TypeAlias = Literal["shown", "omitted", "hidden"]
"""`omitted`: a block without text, whose signature carries it. `hidden`: no block at all."""


class Blocks:
    def __init__(self, thinking: Thinking, turn_id: str) -> None:
        self._thinking = thinking
        self._turn_id = turn_id
        self._open: answer.ContentBlock | None = None
        self._index = -1
        self._thought: list[str] = []
        self._arguments = StrictJson()

    def piece(self, piece: Piece) -> Iterator[answer.BlockEvent]:
        """It goes on with the call that is under way, thinks, speaks, and begins other calls: in this order."""
        new = next((at for at, delta in enumerate(piece.calls) if delta.id is not None), len(piece.calls))
        for delta in piece.calls[:new]:
            yield from self._call(delta)
        if piece.reasoning and self._thinking != "hidden":
            yield from self._think(piece.reasoning)
        if piece.content:
            yield from self._begin(answer.TextBlock(""))
            yield self._more(answer.TextDelta(piece.content))
        for delta in piece.calls[new:]:
            yield from self._call(delta)

    def close(self) -> Iterator[answer.BlockEvent]:
        if self._open is None:
            return
        if isinstance(self._open, answer.ThinkingBlock):
            yield self._more(answer.SignatureDelta(self._signature()))
        yield answer.BlockStop(self._index)
        self._open = None

    def _begin(self, block: answer.ContentBlock) -> Iterator[answer.BlockEvent]:
        """Goes on where such a block is open; a call is always a new one."""
        if type(block) is type(self._open) and not isinstance(block, answer.ToolUseBlock):
            return
        yield from self.close()
        self._open, self._index = block, self._index + 1
        yield answer.BlockStart(self._index, block)

    def _more(self, delta: answer.BlockDelta) -> answer.BlockGrowth:
        return answer.BlockGrowth(self._index, delta)

    def _think(self, text: str) -> Iterator[answer.BlockEvent]:
        yield from self._begin(answer.ThinkingBlock("", ""))
        self._thought.append(text)
        if self._thinking == "shown":
            yield self._more(answer.ThinkingDelta(text))

    def _signature(self) -> str:
        thought, self._thought = "".join(self._thought), []
        if self._thinking == "shown":
            return signature.shown(self._turn_id)
        return signature.carrying(self._turn_id, thought)

    def _call(self, delta: CallDelta) -> Iterator[answer.BlockEvent]:
        if delta.id is not None:
            yield from self._begin(answer.ToolUseBlock(delta.id, delta.name or "", EMPTY))
            self._arguments = StrictJson()
        if text := self._arguments.feed(delta.arguments):
            yield self._more(answer.InputJsonDelta(text))


EMPTY = msgspec.Raw(b"{}")


def whole(events: Iterable[answer.BlockEvent]) -> list[answer.ContentBlock]:
    """What the SDKs make of a stream."""
    blocks: list[answer.ContentBlock] = []
    grown: list[list[answer.BlockDelta]] = []
    for event in events:
        if isinstance(event, answer.BlockStart):
            blocks.append(event.content_block)
            grown.append([])
        elif isinstance(event, answer.BlockGrowth):
            grown[event.index].append(event.delta)
    return [_grown(block, deltas) for block, deltas in zip(blocks, grown, strict=True)]


def _grown(block: answer.ContentBlock, deltas: list[answer.BlockDelta]) -> answer.ContentBlock:
    match block:
        case answer.TextBlock():
            return answer.TextBlock("".join(delta.text for delta in deltas if isinstance(delta, answer.TextDelta)))
        case answer.ThinkingBlock():
            thinking = "".join(delta.thinking for delta in deltas if isinstance(delta, answer.ThinkingDelta))
            (signed,) = (delta.signature for delta in deltas if isinstance(delta, answer.SignatureDelta))
            return answer.ThinkingBlock(thinking, signed)
        case answer.ToolUseBlock():
            written = "".join(delta.partial_json for delta in deltas if isinstance(delta, answer.InputJsonDelta))
            arguments = StrictJson()
            arguments.feed(written)
            return answer.ToolUseBlock(block.id, block.name, msgspec.Raw(arguments.whole().encode()))
