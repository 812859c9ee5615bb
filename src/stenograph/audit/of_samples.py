"""The samples by themselves and beside the record: law 7, and that every sampled token is trained exactly once."""

from __future__ import annotations

from collections import Counter

import numpy as np

from stenograph.audit.case import Case, Verdicts
from stenograph.core import Sample


def equal_lengths(case: Case) -> Verdicts:
    """And the columns say the same: spans, marks, mask and logprobs are of the same tokens."""
    for sample in case.evidence.samples:
        fault = _fault_of_lengths(sample) or _fault_of_columns(sample)
        yield 1, f"sample {sample.id}: {fault}" if fault else None


def _fault_of_lengths(sample: Sample) -> str | None:
    lengths = [len(column) for column in (sample.tokens, sample.sampled, sample.mask, sample.logprobs)]
    if len(set(lengths)) != 1:
        return f"tokens, sampled, mask and logprobs have lengths {lengths}"
    edges = [edge for span in sample.spans for edge in (span.start, span.end)]
    return None if [0, *edges, lengths[0]] == sorted([0, *edges, lengths[0]]) else f"spans out of order: {edges}"


def _fault_of_columns(sample: Sample) -> str | None:
    sampled, mask = np.zeros_like(sample.sampled), np.zeros_like(sample.mask)
    for span in sample.spans:
        sampled[span.start : span.end] = 1
        mask[span.start : span.end] = span.trained
    if not np.array_equal(sampled, sample.sampled):
        return "`sampled` is not 1 exactly on its spans"
    if not np.array_equal(mask, sample.mask):
        return "`mask` is not 1 exactly on its trained spans"
    return "a logprob where nothing was sampled" if sample.logprobs[sampled == 0].any() else None


def trained_once(case: Case) -> Verdicts:
    trained = Counter(
        (span.turn_id, span.part, span.end - span.start)
        for sample in case.evidence.samples
        for span in sample.spans
        if span.trained
    )
    for turn in case.turns.values():
        for number, part in enumerate(turn.parts):
            times = trained.pop((turn.id, number, len(part.ids)), 0)
            right = times == 1 or not len(part.ids)
            yield (
                len(part.ids),
                None if right else f"turn {turn.id}: its {len(part.ids)} tokens are trained {times} times",
            )
    for turn_id, _, size in trained:
        yield size, f"turn {turn_id}: {size} tokens are trained that the record does not have"
    for sample in case.evidence.samples:
        end = case.end_of(sample.leaf_turn_id)
        whole = end is not None and np.array_equal(end, sample.tokens)
        yield 0, None if whole else f"sample {sample.id}: not the path from the root to turn {sample.leaf_turn_id}"
