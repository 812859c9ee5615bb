"""A branch becomes a sample: what a trainer is handed (CONTRACT 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from stenograph.core import JSON, Part, Sample, SessionFacts, Span, Turn
from stenograph.export.branch import Branch, branches, main_first

Shared: TypeAlias = Literal["once", "every"]
"""Whether a turn that several branches share is trained in one of them, or in each."""
Keep: TypeAlias = Callable[[Branch], bool]

_Number = TypeVar("_Number", np.int32, np.uint8, np.float32)


def samples(
    facts: SessionFacts, turns: Sequence[Turn], shared: Shared = "once", keep: Keep | None = None
) -> list[Sample]:
    """One for each branch that `keep` lets through, in the order of the branches.

    Filters come before the choice of where a shared turn is trained: else a turn could be trained only in a branch
    that is not there.
    """
    every = branches(turns)
    kept = [branch for branch in every if keep is None or keep(branch)]
    trained = _trained(kept, shared)
    return [_sample(facts, branch, len(every), trained[branch.index]) for branch in kept]


def to_bytes(sample: Sample) -> bytes:
    """`sample.to_json()`, as JSON text without line breaks."""
    return _ENCODER.encode(sample)


def from_json(text: bytes | str) -> Sample:
    """The inverse of `to_bytes`, bit for bit."""
    return _DECODER.decode(text)


def _trained(kept: Sequence[Branch], shared: Shared) -> dict[int, frozenset[str]]:
    """By branch, the turns that are trained there."""
    claimed: set[str] = set()
    trained: dict[int, frozenset[str]] = {}
    for branch in main_first(kept):
        trained[branch.index] = frozenset(turn.id for turn in branch.turns) - claimed
        if shared == "once":
            claimed |= trained[branch.index]
    return trained


def _sample(facts: SessionFacts, branch: Branch, total: int, trained: frozenset[str]) -> Sample:
    runs = list(_runs(branch, trained))
    tokens = _tokens(branch)
    length = len(tokens)
    return Sample(
        id=f"{facts.id}:{branch.leaf.id}",
        session_id=facts.id,
        group=facts.group,
        group_size=facts.group_size,
        role=facts.role,
        branch=branch.index,
        branches=total,
        main=branch.main,
        leaf_turn_id=branch.leaf.id,
        tokens=tokens,
        sampled=_painted(length, np.uint8, ((span, 1) for span, _ in runs)),
        mask=_painted(length, np.uint8, ((span, span.trained) for span, _ in runs)),
        logprobs=_painted(length, np.float32, ((span, part.logprobs) for span, part in runs)),
        spans=tuple(span for span, _ in runs),
        reward=facts.reward,
        rewards={turn.id: facts.rewards[turn.id] for turn in branch.turns if turn.id in facts.rewards},
        scores=facts.scores,
        reward_revision=facts.reward_revision,
        status=facts.state.value,
        truncated=branch.truncated,
        versions=branch.versions,
        notes=branch.notes,
        fork=branch.fork,
        metadata=facts.metadata,
    )


def _tokens(branch: Branch) -> NDArray[np.int32]:
    pieces = (piece for turn in branch.turns for piece in (turn.call.context, *(part.ids for part in turn.parts)))
    return _sealed(np.concatenate(list(pieces), dtype=np.int32, casting="same_kind"))


def _painted(length: int, dtype: type[_Number], runs: Iterator[tuple[Span, Any]]) -> NDArray[_Number]:
    """Zeros, with each span filled."""
    column = np.zeros(length, dtype)
    for span, values in runs:
        column[span.start : span.end] = values
    return _sealed(column)


def _sealed(array: NDArray[_Number]) -> NDArray[_Number]:
    array.setflags(write=False)
    return array


# ------------------------------------------------------------------------------------------------------------ spans


def _runs(branch: Branch, trained: frozenset[str]) -> Iterator[tuple[Span, Part]]:
    """Each run of sampled ids with the part that it is from. A part without ids leaves none."""
    at = 0
    for turn in branch.turns:
        at += len(turn.call.context)
        for number, part in enumerate(turn.parts):
            if len(part.ids):
                yield _span(turn, number, at, turn.id in trained), part
            at += len(part.ids)


def _span(turn: Turn, number: int, start: int, trained: bool) -> Span:
    part = turn.parts[number]
    paused = any(len(later.ids) for later in turn.parts[number + 1 :])
    return Span(
        start=start,
        end=start + len(part.ids),
        turn_id=turn.id,
        choice=turn.choice,
        part=number,
        trained=trained,
        weight_version=part.weight_version,
        step=part.step,
        version_source=part.version_source,
        model=turn.call.model,
        engine=part.engine,
        engine_kind=part.engine_kind,
        logprob_kind=part.logprob_kind,
        sampling=msgspec.json.decode(msgspec.json.encode(turn.call.sampling)),
        constrained=turn.call.constrained,
        finish_reason="paused" if paused else turn.finish_reason,
        stop_reason=None if paused else turn.stop_reason,
        sidecars=part.sidecars,
    )


# ------------------------------------------------------------------------------------------------------------- JSON


def _array(type: Any, numbers: JSON) -> NDArray[Any]:
    """`type` is `NDArray[x]`, an alias of `ndarray[shape, dtype[x]]`. A 1.5 among the ids is refused, not rounded. Rows
    are a table, those without anything in them too."""
    (scalar,) = get_args(get_args(type)[1])
    one: Any = int if issubclass(scalar, np.integer) else float
    rows = bool(numbers) and isinstance(numbers[0], list)
    checked = msgspec.convert(numbers, list[list[one]] if rows else list[one])
    return _sealed(np.array(checked, dtype=scalar))


_ENCODER = msgspec.json.Encoder(enc_hook=np.ndarray.tolist)
_DECODER = msgspec.json.Decoder(Sample, dec_hook=_array)
