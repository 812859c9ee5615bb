"""Events to `/inference/v1/generate`, as JSON and as SSE. `tests/wire/test_generate_laws.py` proves that both say the
same.

What a piece says as text is not told here: ids are, whether any text shows them or not. An error after the first byte
is `data: {"error": …}`, as on vLLM, but no `[DONE]` follows it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import UNSET

from stenograph.core import Closed, Done, Event, Opened, Piece, TopLogprob, Value
from stenograph.errors import StenographError
from stenograph.wire import generate_answer as answer
from stenograph.wire import sse
from stenograph.wire.errors import openai_error
from stenograph.wire.fold import Whole, fold
from stenograph.wire.usage import Usage, usage_of

_ENCODER = msgspec.json.Encoder()


class Wishes(Value):
    request_id: str | None
    prompt_ids: bool
    logprobs: int | None
    """How many tokens an entry shows, the sampled one among them; None: no logprobs."""
    usage: bool
    """In a stream; a JSON answer always has it."""


class GenerateEncoder:
    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes
        self._opened: Opened | None = None

    # ------------------------------------------------------------------------------------------------------ JSON

    def json(self, events: Sequence[Event]) -> bytes:
        whole = fold(events)
        generated = answer.Generated(
            request_id=self._request_id(whole.opened),
            created=int(whole.opened.created_at),
            model=whole.opened.model or None,
            choices=[self._choice(index, choice) for index, choice in enumerate(whole.choices)],
            usage=usage_of(whole.done),
            prompt_token_ids=self._prompt(whole.opened),
        )
        return _ENCODER.encode(generated)

    def _choice(self, index: int, choice: Whole) -> answer.GenerateChoice:
        return answer.GenerateChoice(
            index=index,
            token_ids=choice.ids,
            logprobs=self._evidence(choice.pieces),
            finish_reason=choice.closed.finish_reason,
            stop_reason=choice.closed.stop_reason,
            weight_versions=_spans(choice.closed),
            turn_id=choice.turn_id,
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
                end = answer.GenerateChunkChoice(
                    index=event.choice,
                    finish_reason=event.finish_reason,
                    stop_reason=event.stop_reason,
                    weight_versions=_spans(event),
                )
                return self._chunk([end])
            case Done():
                return (self._chunk([], usage=usage_of(event)) if self._wishes.usage else b"") + sse.DONE

    def sse_idle(self) -> bytes:
        return sse.KEEP_ALIVE

    def sse_error(self, error: StenographError) -> bytes:
        return sse.data(openai_error(error))

    def _beginnings(self, opened: Opened) -> Iterator[bytes]:
        for index, turn_id in enumerate(opened.turn_ids):
            first = answer.GenerateChunkChoice(index=index, turn_id=turn_id)
            yield self._chunk([first], prompt=self._prompt(opened))

    def _piece(self, piece: Piece) -> bytes:
        if not len(piece.ids):
            return b""
        choice = answer.GenerateChunkChoice(
            index=piece.choice, token_ids=piece.ids.tolist(), logprobs=self._evidence([piece])
        )
        return self._chunk([choice])

    def _chunk(
        self,
        choices: list[answer.GenerateChunkChoice],
        *,
        usage: Usage | None = None,
        prompt: list[int] | msgspec.UnsetType = UNSET,
    ) -> bytes:
        if self._opened is None:
            raise ValueError("a stream begins with Opened")
        chunk = answer.GenerateChunk(
            request_id=self._request_id(self._opened), choices=choices, usage=usage, prompt_token_ids=prompt
        )
        return sse.data(_ENCODER.encode(chunk))

    # -------------------------------------------------------------------------------------------------- together

    def _request_id(self, opened: Opened) -> str:
        return f"generate-tokens-{self._wishes.request_id or opened.call_id}"

    def _prompt(self, opened: Opened) -> list[int] | msgspec.UnsetType:
        return opened.prompt.tolist() if self._wishes.prompt_ids else UNSET

    def _evidence(self, pieces: Iterable[Piece]) -> answer.Evidence | None:
        if self._wishes.logprobs is None:
            return None
        return answer.Evidence([entry for piece in pieces for entry in self._entries(piece)])

    def _entries(self, piece: Piece) -> Iterator[answer.SampledEvidence]:
        rows: Sequence[Sequence[TopLogprob]] = piece.top or [()] * len(piece.ids)
        for id, logprob, row in zip(piece.ids.tolist(), piece.logprobs.tolist(), rows, strict=True):
            others = [_evidence(top.token_id, top.logprob) for top in row if top.token_id != id]
            best = [_evidence(id, logprob), *others][: max(self._wishes.logprobs or 0, 1)]
            yield answer.SampledEvidence(_token(id), id, logprob, best)


def _spans(closed: Closed) -> list[answer.WeightVersionSpan] | None:
    ends = list(itertools.accumulate((run.tokens for run in closed.versions), initial=0))
    runs = zip(closed.versions, itertools.pairwise(ends), strict=True)
    return [answer.WeightVersionSpan(run.version, start, end) for run, (start, end) in runs] or None


def _evidence(id: int, logprob: float) -> answer.TokenEvidence:
    return answer.TokenEvidence(_token(id), id, logprob)


def _token(id: int) -> str:
    return f"token_id:{id}"
