"""Where an engine's evidence is checked, and nowhere else (law 2). Behind it nobody needs to doubt a `Delta`.

There are two doors. `delta_from` takes what stood on a wire, where a number may be null, a string or missing, and
makes a `Delta` of it. `checked` watches the stream as a whole, whichever way its deltas were made: values, counts,
order, ends. Both refuse, in a sentence; neither pads, trims or guesses.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stenograph.core import JSON, Delta, Finish, Ids, Request, TopLogprob, VersionRun
from stenograph.errors import CallerError, EvidenceError

SENTINEL = -9999.0
"""What vLLM writes for minus infinity, which JSON does not know. No sampled token has it truthfully."""
LARGEST = float(np.finfo(np.float32).max)
LARGEST_ID = int(np.iinfo(np.int32).max)


def delta_from(
    *,
    choice: JSON,
    ids: JSON,
    logprobs: JSON,
    top: JSON = None,
    finish: Finish | None = None,
    weight_version: str | None = None,
    versions: tuple[VersionRun, ...] = (),
    cached_tokens: int | None = None,
    support: tuple[Ids, ...] | None = None,
    experts: NDArray[Any] | None = None,
) -> Delta:
    """A delta out of raw wire values; `top` holds one list of (id, logprob) pairs a token, best first. An engine says
    either of which weights these very ids are, or of which the latest tokens were, run by run."""
    if type(choice) is not int:
        raise EvidenceError(f"the choice's index is no integer ({choice!r})")
    where = f"choice {choice}"
    tokens = _list(f"{where}: token ids", ids)
    values = _list(f"{where}: logprobs", [] if logprobs is None and not tokens else logprobs)
    _same_length(where, tokens, "logprobs", values)
    if support is not None:
        _same_length(where, tokens, "rows of a sampling mask", support)
    _refuse_values(where, tokens, values)
    return Delta(
        choice=choice,
        ids=np.array(tokens, np.int32),
        logprobs=np.array(values, np.float32),
        top=None if top is None else _rows(where, tokens, _list(f"{where}: top logprobs", top)),
        finish=finish,
        versions=(VersionRun(weight_version, len(tokens)),) if weight_version is not None and tokens else versions,
        cached_tokens=cached_tokens,
        support=support,
        experts=experts,
    )


async def checked(deltas: AsyncIterator[Delta], request: Request, vocab_size: int) -> AsyncGenerator[Delta, None]:
    """The same deltas, each of them proven. Closing it closes `deltas`, which aborts the generation.

    The request is looked at before the first delta is asked for, so an id outside the vocabulary never leaves: there
    are engines that it kills.
    """
    try:
        refuse_foreign_ids(request, vocab_size)
        ledger = _Ledger(request, vocab_size)
        async for delta in deltas:
            ledger.enter(delta)
            yield delta
        ledger.close()
    finally:
        if isinstance(deltas, AsyncGenerator):
            await deltas.aclose()


def best_first(row: Mapping[int, JSON], count: int) -> list[tuple[int, float]]:
    """A row for `delta_from`. A token that truncation left without a chance is reported as minus infinity, on a wire as
    the sentinel, or as null, since JSON has no infinity: it is no alternative, so it is not in the row."""
    told = [(id, logprob) for id, logprob in row.items() if logprob is not None]
    if any(type(logprob) is not float and type(logprob) is not int for _, logprob in told):
        raise EvidenceError("the logprob of an alternative is no number")
    ranked = sorted(told, key=lambda one: -one[1])
    return [(id, logprob) for id, logprob in ranked if logprob > SENTINEL][:count]


def refuse_foreign_ids(request: Request, vocab_size: int) -> None:
    sampling, prompt = request.sampling, request.prompt
    foreign = {
        "prompt": prompt[(prompt < 0) | (prompt >= vocab_size)].tolist(),
        "stop_token_ids": [id for id in sampling.stop_token_ids if id >= vocab_size],
        "logit_bias": [id for id in sampling.logit_bias if id >= vocab_size],
    }
    for field, ids in foreign.items():
        if ids:
            raise CallerError(f"{field}: token id {ids[0]} is outside the vocabulary of {vocab_size}", param=field)


class _Ledger:
    """What has arrived so far, per choice."""

    def __init__(self, request: Request, vocab_size: int) -> None:
        if request.sampling.max_tokens is None:
            raise ValueError("a request without max_tokens")
        self._limit = request.sampling.max_tokens
        self._behind = len(request.prompt) - max(request.path - 1, 0)
        """Tokens of the prompt whose experts are not on record."""
        self._top = request.top_logprobs
        self._vocab_size = vocab_size
        self._counts = [0] * request.n
        self._last: list[int | None] = [None] * request.n
        """The latest id of each choice: its finish may come behind it, in a delta without any."""
        self._finished = [False] * request.n

    def enter(self, delta: Delta) -> None:
        if not 0 <= delta.choice < len(self._counts):
            raise EvidenceError(f"choice {delta.choice} was not asked for: there are {len(self._counts)}")
        where = f"choice {delta.choice}"
        if self._finished[delta.choice] and (len(delta.ids) or delta.finish):
            raise EvidenceError(f"{where}: more arrived after its finish")
        self._counts[delta.choice] += len(delta.ids)
        self._last[delta.choice] = int(delta.ids[-1]) if len(delta.ids) else self._last[delta.choice]
        if self._counts[delta.choice] > self._limit:
            raise EvidenceError(f"{where}: {self._counts[delta.choice]} tokens where max_tokens is {self._limit}")
        _refuse_values(where, delta.ids.tolist(), delta.logprobs.tolist(), self._vocab_size)
        self._refuse_top(where, delta)
        self._refuse_versions(where, delta)
        self._refuse_support(where, delta)
        self._refuse_experts(where, delta)
        if delta.finish:
            self._finish(where, delta, delta.finish)

    def close(self) -> None:
        open_choices = [choice for choice, finished in enumerate(self._finished) if not finished]
        if open_choices:
            raise EvidenceError(f"the stream ended and choice {open_choices[0]} has no finish")

    def _finish(self, where: str, delta: Delta, finish: Finish) -> None:
        """`length` may come before max_tokens (engines clamp it to the context), but not before the first token."""
        if finish.reason == "length" and not self._counts[delta.choice]:
            raise EvidenceError(f"{where}: finished for its length without a single token")
        if not isinstance(finish.stop, int | str | None):
            raise EvidenceError(f"{where}: stopped at {finish.stop!r:.40}, which is neither an id nor a string")
        if isinstance(finish.stop, int) and self._last[delta.choice] != finish.stop:
            raise EvidenceError(f"{where}: stopped at token {finish.stop}, which is not the last token returned")
        self._finished[delta.choice] = True

    def _refuse_versions(self, where: str, delta: Delta) -> None:
        reach = sum(run.tokens for run in delta.versions)
        if any(run.tokens < 1 for run in delta.versions) or reach > self._counts[delta.choice]:
            raise EvidenceError(f"{where}: weight versions of {reach} tokens, and {self._counts[delta.choice]} came")

    def _refuse_support(self, where: str, delta: Delta) -> None:
        """What was drawn was there to be drawn."""
        for id, row in zip(delta.ids.tolist(), delta.support or (), strict=False):
            if id not in row or not ((row >= 0) & (row < self._vocab_size)).all():
                raise EvidenceError(f"{where}: the sampling mask of token {id} does not hold it, or holds what is none")

    def _refuse_experts(self, where: str, delta: Delta) -> None:
        if delta.experts is None:
            return
        rows = self._behind + self._counts[delta.choice] - 1
        if delta.experts.ndim < 2 or delta.experts.dtype.kind not in "iu" or len(delta.experts) != rows:
            told = f"{delta.experts.shape} of {delta.experts.dtype}"
            raise EvidenceError(f"{where}: routed experts of {rows} tokens were to come, and it is {told}")

    def _refuse_top(self, where: str, delta: Delta) -> None:
        if not self._top:
            if delta.top is not None:
                raise EvidenceError(f"{where}: top logprobs that were not asked for")
            return
        if delta.top is None:
            if len(delta.ids):
                raise EvidenceError(f"{where}: top logprobs were asked for and are missing")
            return
        for row in delta.top:
            self._refuse_row(where, row)

    def _refuse_row(self, where: str, row: Sequence[TopLogprob]) -> None:
        where = f"{where}, top logprobs"
        if not 1 <= len(row) <= self._top:
            raise EvidenceError(f"{where}: a row of {len(row)} where {self._top} were asked for")
        ids, values = [one.token_id for one in row], [one.logprob for one in row]
        _refuse_values(where, ids, values, self._vocab_size)
        if len(set(ids)) != len(ids):
            raise EvidenceError(f"{where}: a token stands twice in a row")
        if values != sorted(values, reverse=True):
            raise EvidenceError(f"{where}: a row is not sorted best first")


def _rows(where: str, tokens: Sequence[JSON], rows: Sequence[JSON]) -> tuple[tuple[TopLogprob, ...], ...]:
    _same_length(where, tokens, "rows of top logprobs", rows)
    return tuple(_row(f"{where}, top logprobs of token {place}", row) for place, row in enumerate(rows))


def _row(where: str, row: JSON) -> tuple[TopLogprob, ...]:
    pairs = [_list(where, pair) for pair in _list(where, row)]
    if any(len(pair) != 2 for pair in pairs):
        raise EvidenceError(f"{where}: not pairs of id and logprob")
    ids, values = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    _refuse_values(where, ids, values)
    return tuple(TopLogprob(id, float(value)) for id, value in zip(ids, values, strict=True))


def _list(what: str, value: JSON) -> Sequence[JSON]:
    if value is None:
        raise EvidenceError(f"{what}: missing")
    if not isinstance(value, (list, tuple)):
        raise EvidenceError(f"{what}: not a list but {value!r:.40}")
    return value


def _same_length(where: str, tokens: Sequence[JSON], what: str, values: Sequence[JSON]) -> None:
    if len(tokens) != len(values):
        raise EvidenceError(f"{where}: {len(tokens)} token ids came with {len(values)} {what}")


def _refuse_values(where: str, ids: Sequence[JSON], logprobs: Sequence[JSON], vocab_size: int = LARGEST_ID + 1) -> None:
    for place, (id, logprob) in enumerate(zip(ids, logprobs, strict=True)):
        if fault := _fault_of_id(id, vocab_size) or _fault_of_logprob(logprob):
            raise EvidenceError(f"{where}, token {place}: {fault}")


def _fault_of_id(id: JSON, vocab_size: int) -> str | None:
    if type(id) is not int:
        return f"its id is no integer ({id!r:.40})"
    if not 0 <= id < vocab_size:
        return f"its id {id} is outside the vocabulary of {vocab_size}"
    return None


def _fault_of_logprob(logprob: JSON) -> str | None:
    """None for a legal one. 0.0 is legal: the model was certain."""
    if logprob is None:
        return "its logprob is missing (null)"
    if type(logprob) is not float and type(logprob) is not int:
        return f"its logprob is no number ({logprob!r:.40})"
    if not -LARGEST <= logprob <= LARGEST:
        return f"its logprob is not finite ({logprob})"
    if logprob > 0:
        return f"its logprob is positive ({logprob})"
    if logprob == SENTINEL:
        return f"its logprob is the sentinel {SENTINEL}, which stands for no value"
    return None
