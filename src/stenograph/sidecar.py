"""Large evidence beside tokens: packed, named by its content, joined again along a sample. Pure.

Each is an `.npz` of one part of a turn, and its rows are the part's share: of `sampling_mask` and `top_logprobs` one a
sampled token; of `routed_experts` one a token that was computed for them, from the last one of the part before on (it
had been sampled, and not been computed yet) up to the last but one of its own.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from stenograph.core import Delta, Ids, Part, Sample, TopLogprob

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
SAMPLING_MASK, TOP_LOGPROBS, ROUTED_EXPERTS = "sampling_mask", "top_logprobs", "routed_experts"
ROWS = {SAMPLING_MASK: "lengths", TOP_LOGPROBS: "lengths", ROUTED_EXPERTS: "experts"}
"""The array of each that has as many entries as the sidecar has rows."""


class Beside:
    """Of one choice, as it comes. What is told of a token first stands: it is what the next was sampled behind."""

    def __init__(self, unrecorded: int) -> None:
        """`unrecorded`: tokens of the prompt whose experts are not on record."""
        self._unrecorded = unrecorded
        self._support: list[Ids | None] = []
        self._top: list[tuple[TopLogprob, ...] | None] = []
        self._experts: list[NDArray[Any]] = []

    def take(self, delta: Delta) -> None:
        unknown = [None] * len(delta.ids)
        self._support += unknown if delta.support is None else delta.support
        self._top += unknown if delta.top is None else delta.top
        if delta.experts is not None:
            self._experts.append(delta.experts[sum(map(len, self._experts)) :])

    def named(self, parts: Sequence[Part]) -> tuple[tuple[Part, ...], dict[str, bytes]]:
        """The parts with the names of their sidecars, and the sidecars."""
        bodies: dict[str, bytes] = {}
        named: list[Part] = []
        end = 0
        for part in parts:
            start, end = end, end + len(part.ids)
            held = {kind: packed(arrays) for kind, arrays in self._arrays(start, end)}
            bodies |= dict(held.values())
            named.append(msgspec.structs.replace(part, sidecars={kind: name for kind, (name, _) in held.items()}))
        return tuple(named), bodies

    def _arrays(self, start: int, end: int) -> Iterator[tuple[str, Arrays]]:
        support = [row for row in self._support[start:end] if row is not None]
        top = [row for row in self._top[start:end] if row is not None]
        if len(support) == end - start:
            yield SAMPLING_MASK, mask_arrays(support)
        if len(top) == end - start:
            yield TOP_LOGPROBS, top_arrays(top)
        if self._experts:
            before = self._unrecorded - 1
            every = np.concatenate(self._experts)
            yield ROUTED_EXPERTS, {"experts": every[start + before if start else 0 : end + before]}


def mask_arrays(rows: Sequence[Ids]) -> Arrays:
    return {"lengths": _lengths(rows), "ids": np.concatenate(rows)}


def top_arrays(rows: Sequence[Sequence[TopLogprob]]) -> Arrays:
    flat = [one for row in rows for one in row]
    ids, logprobs = [one.token_id for one in flat], [one.logprob for one in flat]
    return {"lengths": _lengths(rows), "ids": np.array(ids, np.int32), "logprobs": np.array(logprobs, np.float32)}


def _lengths(rows: Sequence[Any]) -> NDArray[np.int32]:
    return np.array([len(row) for row in rows], np.int32)


def packed(arrays: Arrays) -> tuple[str, bytes]:
    """The name, and the bytes: the same for the same arrays."""
    with io.BytesIO() as file:
        np.savez(file, allow_pickle=False, **arrays)
        body = file.getvalue()
    return hashlib.blake2b(body, digest_size=16).hexdigest(), body


def unpacked(body: bytes) -> dict[str, NDArray[Any]]:
    with np.load(io.BytesIO(body), allow_pickle=False) as file:
        return dict(file)


def joined(sample: Sample, load: Callable[[str], bytes]) -> dict[str, dict[str, NDArray[Any]]]:
    """By kind, what is there of the whole sample: a row a sampled token, or a row a token up to the last but one that
    was sampled. A kind that a turn lacks, or was not told all of, is left out."""
    kinds = set.intersection(*(set(span.sidecars) for span in sample.spans)) if sample.spans else set()
    found = {kind: _joined([unpacked(load(span.sidecars[kind])) for span in sample.spans]) for kind in sorted(kinds)}
    return {kind: arrays for kind, arrays in found.items() if len(arrays[ROWS[kind]]) == _wanted(sample, kind)}


def _joined(pieces: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _wanted(sample: Sample, kind: str) -> int:
    return sample.spans[-1].end - 1 if kind == ROUTED_EXPERTS else int(sample.sampled.sum())
