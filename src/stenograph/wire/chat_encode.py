"""Events to Chat Completions, as JSON and as SSE. `tests/wire/test_chat_laws.py` proves that both say the same.

A stream of one choice reads: role, turn id and prompt ids; what is sampled, as it comes; the finish. Content is null
only beside tool calls, as OpenAI has it; a reply of nothing at all has the content '', which agents may concatenate
without looking. A stream cannot know that before its end, so it says it there.

An error after the first byte is OpenAI's and vLLM's `data: {"error": …}`, on which the SDKs raise. No `[DONE]` follows
it, unlike on vLLM: whoever overlooked the error must not take the answer for complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import UNSET

from stenograph.core import CallDelta, Closed, Done, Event, Opened, Piece, Value
from stenograph.errors import StenographError
from stenograph.wire import chat_answer as answer
from stenograph.wire import sse
from stenograph.wire.codec import TokenBytes
from stenograph.wire.errors import openai_error
from stenograph.wire.fold import Whole, WholeCall, fold
from stenograph.wire.logprobs import TokenLogprob, entries
from stenograph.wire.usage import Usage, usage_of

_ENCODER = msgspec.json.Encoder()


class Wishes(Value):
    """What the caller wants to see beside the text."""

    token_ids: bool
    logprobs: bool
    usage: bool
    """In a stream; a JSON answer always has it."""
    tokens_as_ids: bool
    """`token` in logprobs is `token_id:17`, which tells tokens apart that read alike."""


class ChatEncoder:
    def __init__(self, wishes: Wishes, token_bytes: TokenBytes) -> None:
        self._wishes = wishes
        self._token_bytes = token_bytes
        self._opened: Opened | None = None
        self._visible: set[int] = set()
        """The choices of a stream that have said something or called a tool."""

    # ------------------------------------------------------------------------------------------------------ JSON

    def json(self, events: Sequence[Event]) -> bytes:
        whole = fold(events)
        completion = answer.ChatCompletion(
            id=_completion_id(whole.opened),
            created=int(whole.opened.created_at),
            model=whole.opened.model,
            choices=[self._choice(index, choice) for index, choice in enumerate(whole.choices)],
            usage=usage_of(whole.done),
            prompt_token_ids=whole.opened.prompt.tolist() if self._wishes.token_ids else UNSET,
        )
        return _ENCODER.encode(completion)

    def _choice(self, index: int, choice: Whole) -> answer.ChatChoice:
        entries = (
            [entry for piece in choice.pieces for entry in self._entries(piece)] if self._wishes.logprobs else None
        )
        return answer.ChatChoice(
            index=index,
            message=_message(choice),
            logprobs=None if entries is None else answer.Logprobs(entries),
            finish_reason=choice.closed.finish_reason,
            stop_reason=choice.closed.stop_reason,
            turn_id=choice.turn_id,
            token_ids=choice.ids if self._wishes.token_ids else UNSET,
        )

    # ------------------------------------------------------------------------------------------------------- SSE

    def sse(self, event: Event) -> bytes:
        match event:
            case Opened():
                self._opened = event
                return b"".join(self._beginnings(event))
            case Piece():
                return self._piece(event)
            case Closed():
                return self._end(event)
            case Done():
                return self._last(event)

    def sse_idle(self) -> bytes:
        return sse.KEEP_ALIVE

    def sse_error(self, error: StenographError) -> bytes:
        return sse.data(openai_error(error))

    def _beginnings(self, opened: Opened) -> Iterator[bytes]:
        """One chunk a choice, in order: SDKs number choices by the order in which they first see them."""
        prompt = opened.prompt.tolist() if self._wishes.token_ids else UNSET
        for index, turn_id in enumerate(opened.turn_ids):
            choice = answer.ChatChunkChoice(index, answer.ChatDelta(role="assistant"), turn_id=turn_id)
            yield self._chunk([choice], prompt=prompt)

    def _piece(self, piece: Piece) -> bytes:
        sampled = len(piece.ids) > 0
        delta = answer.ChatDelta(
            content=piece.content or UNSET,
            reasoning_content=piece.reasoning or UNSET,
            tool_calls=[_call_delta(call) for call in piece.calls] or UNSET,
        )
        if piece.content or piece.calls:
            self._visible.add(piece.choice)
        elif not piece.reasoning and not (sampled and (self._wishes.token_ids or self._wishes.logprobs)):
            return b""
        choice = answer.ChatChunkChoice(
            piece.choice,
            delta,
            logprobs=answer.Logprobs(self._entries(piece)) if self._wishes.logprobs and sampled else None,
            token_ids=piece.ids.tolist() if self._wishes.token_ids else UNSET,
        )
        return self._chunk([choice])

    def _end(self, closed: Closed) -> bytes:
        delta = answer.ChatDelta() if closed.choice in self._visible else answer.ChatDelta(content="")
        choice = answer.ChatChunkChoice(
            closed.choice, delta, finish_reason=closed.finish_reason, stop_reason=closed.stop_reason
        )
        return self._chunk([choice])

    def _last(self, done: Done) -> bytes:
        usage = self._chunk([], usage=usage_of(done)) if self._wishes.usage else b""
        return usage + sse.DONE

    def _chunk(
        self,
        choices: list[answer.ChatChunkChoice],
        *,
        usage: Usage | None = None,
        prompt: list[int] | msgspec.UnsetType = UNSET,
    ) -> bytes:
        if self._opened is None:
            raise ValueError("a stream begins with Opened")
        chunk = answer.ChatCompletionChunk(
            id=_completion_id(self._opened),
            created=int(self._opened.created_at),
            model=self._opened.model,
            choices=choices,
            usage=usage if self._wishes.usage else UNSET,
            prompt_token_ids=prompt,
        )
        return sse.data(_ENCODER.encode(chunk))

    def _entries(self, piece: Piece) -> list[TokenLogprob]:
        return entries(piece, self._token_bytes, as_ids=self._wishes.tokens_as_ids)


def _completion_id(opened: Opened) -> str:
    return f"chatcmpl-{opened.call_id}"


def _message(choice: Whole) -> answer.ChatMessage:
    calls = [_call(call) for call in choice.calls]
    content = choice.content or (None if calls else "")
    return answer.ChatMessage("assistant", content, choice.reasoning or UNSET, calls or UNSET)


def _call(call: WholeCall) -> answer.FunctionToolCall:
    return answer.FunctionToolCall(call.id, answer.FunctionCall(call.name, call.arguments))


def _call_delta(delta: CallDelta) -> answer.ToolCallDelta:
    first = delta.id is not None
    return answer.ToolCallDelta(
        delta.index,
        answer.FunctionDelta(delta.arguments, UNSET if delta.name is None else delta.name),
        id=UNSET if delta.id is None else delta.id,
        type="function" if first else UNSET,
    )
