"""What is sampled, as it comes: read for the answer, and kept for the record."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stenograph.core import Delta, Finish, Ids, Logprobs, Part, Piece, Request, TopLogprob
from stenograph.origin import Origins, Weights
from stenograph.render.reply import ReplyReader
from stenograph.sidecar import Beside


class Choice:
    """One choice of a call. `finish` is there once the engine has ended it."""

    def __init__(self, reader: ReplyReader, weights: Weights, unrecorded: int) -> None:
        self.reader = reader
        self.finish = Finish("abort")
        self._origins = Origins(weights)
        self._beside = Beside(unrecorded)
        self._ids: list[Ids] = []
        self._logprobs: list[Logprobs] = []
        self._top: list[tuple[TopLogprob, ...]] | None = None

    def take(self, delta: Delta) -> Piece:
        self._ids.append(delta.ids)
        self._logprobs.append(delta.logprobs)
        self._origins.take(delta)
        self._beside.take(delta)
        if delta.top is not None:
            self._top = self._top or []
            self._top += delta.top
        said = [self.reader.feed(delta.ids.tolist())]
        if delta.finish is not None:
            self.finish = delta.finish
            said.append(self.reader.finish(self.ids.tolist(), delta.finish))
        return Piece(
            choice=delta.choice,
            ids=delta.ids,
            logprobs=delta.logprobs,
            top=delta.top,
            content="".join(more.content for more in said),
            reasoning="".join(more.reasoning for more in said),
            calls=tuple(call for more in said for call in more.calls),
        )

    @property
    def ids(self) -> Ids:
        return np.concatenate(self._ids) if self._ids else np.zeros(0, np.int32)

    @property
    def logprobs(self) -> Logprobs:
        return np.concatenate(self._logprobs) if self._logprobs else np.zeros(0, np.float32)

    def parts(self) -> tuple[tuple[Part, ...], dict[str, bytes]]:
        """And the sidecars that they name."""
        return self._beside.named(self._origins.parts(self.ids, self.logprobs))

    @property
    def top(self) -> tuple[tuple[TopLogprob, ...], ...] | None:
        return None if self._top is None else tuple(self._top)


class Tally:
    def __init__(
        self, sent: Request, now: Callable[[], float], reader: Callable[[], ReplyReader], weights: Weights
    ) -> None:
        unrecorded = len(sent.prompt) - max(sent.path - 1, 0)
        self.choices = [Choice(reader(), weights, unrecorded) for _ in range(sent.n)]
        self.first_token_at: float | None = None
        self.cached_tokens: int | None = None
        self._now = now

    @property
    def begun(self) -> bool:
        return self.first_token_at is not None

    def take(self, delta: Delta) -> Piece:
        if self.first_token_at is None:
            self.first_token_at = self._now()
        if delta.cached_tokens is not None:
            self.cached_tokens = delta.cached_tokens
        return self.choices[delta.choice].take(delta)
