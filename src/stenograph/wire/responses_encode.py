"""Events to Responses, as JSON and as SSE. `tests/wire/test_responses_laws.py` proves that both say the same.

A stream reads: `response.created`, `response.in_progress`; each item opened, filled and closed, one after the other;
`response.completed`, or `response.incomplete` where the reply was cut. There is no `[DONE]`. The last item is closed
when the turn is durable and not before: agents run a tool as soon as its item is done.

An error after the first byte is an `error` event, on which the SDKs raise, and `response.failed`, on which agents try
again; before `response.created` there is no response to fail, and so only the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from stenograph.core import Closed, Done, Event, Opened, Piece, Value
from stenograph.errors import Overloaded, StenographError
from stenograph.wire import responses_answer as answer
from stenograph.wire import sse
from stenograph.wire.codec import TokenBytes
from stenograph.wire.fold import fold
from stenograph.wire.logprobs import TokenLogprob, entries
from stenograph.wire.responses_names import response_name
from stenograph.wire.responses_output import Output
from stenograph.wire.responses_tools import Toolbox

_ENCODER = msgspec.json.Encoder()
ENDS: Mapping[str, tuple[answer.Status, answer.Incomplete | None]] = {
    "stop": ("completed", None),
    "tool_calls": ("completed", None),
    "length": ("incomplete", answer.Incomplete("max_output_tokens")),
    "abort": ("incomplete", answer.Incomplete("abort")),
}
"""By finish reason."""


class Wishes(Value):
    """What the caller wants to see beside the output."""

    token_ids: bool = False
    logprobs: bool = False
    sealed: bool = False
    """`include: ["reasoning.encrypted_content"]`."""


class ResponsesEncoder:
    def __init__(self, wishes: Wishes, toolbox: Toolbox, echo: Mapping[str, Raw], token_bytes: TokenBytes) -> None:
        """`echo`: what a response says of its request, as the caller wrote it."""
        self._wishes = wishes
        self._toolbox = toolbox
        self._echo: dict[str, Any] = dict(echo)
        self._token_bytes = token_bytes
        self._begun: _Begun | None = None
        self._sent = 0

    def json(self, events: Sequence[Event]) -> bytes:
        whole = fold(events)
        begun, [choice] = self._begin(whole.opened), whole.choices
        for piece in choice.pieces:
            list(begun.take(piece))
        list(begun.close(choice.closed))
        return _ENCODER.encode(self._response(begun, whole.done))

    # ------------------------------------------------------------------------------------------------------- SSE

    def sse(self, event: Event) -> bytes:
        return b"".join(map(self._frame, self._events(event)))

    def sse_idle(self) -> bytes:
        return sse.KEEP_ALIVE

    def sse_error(self, error: StenographError) -> bytes:
        detail = _error(error)
        told = [self._frame(answer.Failure(code=detail.code, message=detail.message, param=detail.param, error=detail))]
        if self._begun is not None:
            failed = msgspec.structs.replace(self._response(self._begun), status="failed", error=detail)
            told.append(self._frame(answer.Failed(response=failed)))
        return b"".join(told)

    def _events(self, event: Event) -> Iterator[answer.StreamEvent]:
        if isinstance(event, Opened):
            self._begun = self._begin(event)
            yield answer.Created(response=self._response(self._begun))
            yield answer.InProgress(response=self._response(self._begun))
            return
        if self._begun is None:
            raise ValueError("a stream begins with Opened")
        match event:
            case Piece():
                yield from self._begun.take(event)
            case Closed():
                yield from self._begun.close(event)
            case Done():
                response = self._response(self._begun, event)
                ended = answer.Completed if response.incomplete_details is None else answer.Incompleted
                yield ended(response=response)

    def _frame(self, event: answer.StreamEvent) -> bytes:
        numbered = msgspec.structs.replace(event, sequence_number=self._sent)
        self._sent += 1
        name = type(event).__struct_config__.tag
        return sse.named(str(name), _ENCODER.encode(numbered))

    # -------------------------------------------------------------------------------------------------- response

    def _begin(self, opened: Opened) -> _Begun:
        return _Begun(opened, self._wishes, self._toolbox, self._token_bytes)

    def _response(self, begun: _Begun, done: Done | None = None) -> answer.Response:
        """As it stands; `done`: it has ended."""
        status, cut = begun.end
        with_ids = self._wishes.token_ids and done is not None
        return answer.Response(
            id=response_name(begun.turn_id),
            created_at=int(begun.opened.created_at),
            status="in_progress" if done is None else status,
            incomplete_details=cut,
            model=begun.opened.model,
            output=begun.output.items,
            usage=None if done is None else _usage(done, begun.reasoning_tokens),
            turn_id=begun.turn_id,
            prompt_token_ids=begun.opened.prompt.tolist() if with_ids else UNSET,
            token_ids=begun.ids if with_ids else UNSET,
            **self._echo,
        )


class _Begun:
    """An answer under way."""

    def __init__(self, opened: Opened, wishes: Wishes, toolbox: Toolbox, token_bytes: TokenBytes) -> None:
        self.opened = opened
        [self.turn_id] = opened.turn_ids
        self.output = Output(self.turn_id, toolbox.caller_knows, sealed=wishes.sealed)
        self.end: tuple[answer.Status, answer.Incomplete | None] = ("in_progress", None)
        self.ids: list[int] = []
        self.reasoning_tokens = 0
        self._wishes = wishes
        self._token_bytes = token_bytes
        self._silent = 0
        """Tokens that have said nothing yet: they count to what is said next."""
        self._logprobs: list[TokenLogprob] = []
        """Theirs."""

    def take(self, piece: Piece) -> Iterator[answer.OfOutput]:
        self._silent += len(piece.ids)
        if self._wishes.token_ids:
            self.ids += piece.ids.tolist()
        if self._wishes.logprobs:
            self._logprobs += entries(piece, self._token_bytes)
        yield from self.output.take(piece, self._logprobs)
        if piece.content or piece.reasoning or piece.calls:
            self.reasoning_tokens += 0 if piece.content or piece.calls else self._silent
            self._silent, self._logprobs = 0, []

    def close(self, closed: Closed) -> Iterator[answer.OfOutput]:
        self.end = ENDS[closed.finish_reason]
        yield from self.output.close(self.end[0])


def _usage(done: Done, reasoning_tokens: int) -> answer.Usage:
    return answer.Usage(
        done.prompt_tokens,
        answer.InputTokensDetails(done.cached_tokens or 0),
        done.completion_tokens,
        answer.OutputTokensDetails(reasoning_tokens),
        done.prompt_tokens + done.completion_tokens,
    )


def _error(error: StenographError) -> answer.ResponseError:
    """OpenAI's own few codes, which agents look at to know whether to try again; the message has ours."""
    code = "rate_limit_exceeded" if isinstance(error, Overloaded) else "server_error"
    said = f"{error.message} ({error.code})" if error.code else error.message
    return answer.ResponseError(code, said, error.type, error.param)
