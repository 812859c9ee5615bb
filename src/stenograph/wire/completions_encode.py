"""Events to Completions, as JSON and as SSE. `tests/wire/test_completions_laws.py` proves that both say the same.

A stream of one choice reads: turn id, prompt ids and the echo; what is sampled, as it comes; the finish. An error after
the first byte is OpenAI's `data: {"error": …}`, which no `[DONE]` follows, as in Chat Completions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import UNSET

from stenograph.core import Closed, Done, Event, Opened, Piece, TopLogprob, Value
from stenograph.errors import StenographError
from stenograph.wire import completions_answer as answer
from stenograph.wire import sse
from stenograph.wire.codec import TokenBytes
from stenograph.wire.errors import openai_error
from stenograph.wire.fold import Whole, fold
from stenograph.wire.usage import Usage, usage_of

_ENCODER = msgspec.json.Encoder()


class Wishes(Value):
    """What the caller wants to see beside the text."""

    echo: str
    """What stands before each answer; '' where it did not ask for the prompt."""
    token_ids: bool
    logprobs: int | None
    """How many alternatives; None: none, and not the sampled tokens' own either."""
    usage: bool
    """In a stream; a JSON answer always has it."""
    tokens_as_ids: bool


class CompletionsEncoder:
    def __init__(self, wishes: Wishes, token_bytes: TokenBytes) -> None:
        self._wishes = wishes
        self._token_bytes = token_bytes
        self._opened: Opened | None = None
        self._offsets: dict[int, int] = {}
        """By choice: how many characters its stream has come to."""

    # ------------------------------------------------------------------------------------------------------ JSON

    def json(self, events: Sequence[Event]) -> bytes:
        whole = fold(events)
        prompt = self._prompt(whole.opened)
        completion = answer.Completion(
            id=_completion_id(whole.opened),
            created=int(whole.opened.created_at),
            model=whole.opened.model,
            choices=[self._choice(index, choice, prompt) for index, choice in enumerate(whole.choices)],
            usage=usage_of(whole.done),
            prompt_token_ids=prompt,
        )
        return _ENCODER.encode(completion)

    def _choice(self, index: int, choice: Whole, prompt: list[int] | msgspec.UnsetType) -> answer.CompletionChoice:
        return answer.CompletionChoice(
            index=index,
            text=self._wishes.echo + choice.content,
            logprobs=self._logprobs(choice.pieces, 0),
            finish_reason=choice.closed.finish_reason,
            stop_reason=choice.closed.stop_reason,
            turn_id=choice.turn_id,
            prompt_token_ids=prompt,
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
                end = answer.CompletionChunkChoice(
                    index=event.choice, finish_reason=event.finish_reason, stop_reason=event.stop_reason
                )
                return self._chunk([end])
            case Done():
                return (self._chunk([], usage_of(event)) if self._wishes.usage else b"") + sse.DONE

    def sse_idle(self) -> bytes:
        return sse.KEEP_ALIVE

    def sse_error(self, error: StenographError) -> bytes:
        return sse.data(openai_error(error))

    def _beginnings(self, opened: Opened) -> Iterator[bytes]:
        for index, turn_id in enumerate(opened.turn_ids):
            first = answer.CompletionChunkChoice(
                index=index, text=self._wishes.echo, turn_id=turn_id, prompt_token_ids=self._prompt(opened)
            )
            yield self._chunk([first])

    def _piece(self, piece: Piece) -> bytes:
        ids = piece.ids.tolist()
        if not piece.content and not (ids and (self._wishes.token_ids or self._wishes.logprobs is not None)):
            return b""
        offset = self._offsets.get(piece.choice, 0)
        self._offsets[piece.choice] = offset + sum(map(self._length, ids))
        choice = answer.CompletionChunkChoice(
            index=piece.choice,
            text=piece.content,
            logprobs=self._logprobs([piece], offset) if ids else None,
            token_ids=ids if self._wishes.token_ids else UNSET,
        )
        return self._chunk([choice])

    def _chunk(self, choices: list[answer.CompletionChunkChoice], usage: Usage | None = None) -> bytes:
        if self._opened is None:
            raise ValueError("a stream begins with Opened")
        chunk = answer.CompletionChunk(
            id=_completion_id(self._opened),
            created=int(self._opened.created_at),
            model=self._opened.model,
            choices=choices,
            usage=usage if self._wishes.usage else UNSET,
        )
        return sse.data(_ENCODER.encode(chunk))

    # -------------------------------------------------------------------------------------------------- together

    def _prompt(self, opened: Opened) -> list[int] | msgspec.UnsetType:
        return opened.prompt.tolist() if self._wishes.token_ids else UNSET

    def _logprobs(self, pieces: Iterable[Piece], offset: int) -> answer.CompletionLogprobs | None:
        if self._wishes.logprobs is None:
            return None
        columns = answer.CompletionLogprobs([], [], [], [])
        for piece in pieces:
            rows: Sequence[Sequence[TopLogprob]] = piece.top or [()] * len(piece.ids)
            for id, logprob, row in zip(piece.ids.tolist(), piece.logprobs.tolist(), rows, strict=True):
                columns.tokens.append(self._token(id))
                columns.token_logprobs.append(logprob)
                columns.top_logprobs.append(self._alternatives(id, logprob, row))
                columns.text_offset.append(offset)
                offset += self._length(id)
        return columns

    def _alternatives(self, id: int, logprob: float, row: Iterable[TopLogprob]) -> dict[str, float]:
        found = {self._token(id): logprob}
        for top in row:
            found.setdefault(self._token(top.token_id), top.logprob)
        return found

    def _token(self, id: int) -> str:
        return f"token_id:{id}" if self._wishes.tokens_as_ids else self._token_bytes(id).decode(errors="replace")

    def _length(self, id: int) -> int:
        """In characters, each counted where it begins."""
        return sum(byte & 0xC0 != 0x80 for byte in self._token_bytes(id))


def _completion_id(opened: Opened) -> str:
    return f"cmpl-{opened.call_id}"
