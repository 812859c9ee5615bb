"""Sessions whose branches share a long beginning."""

from __future__ import annotations

import msgspec
import numpy as np

from stenograph.core import Part, Sample
from stenograph.export.sample import samples
from tests.export.trees import FACTS, call, part, turn

SAID = 10
"""Tokens that the first turn samples, of those that are shared."""


def family(session: int, branches: int, length: int, shared: int, vocabulary: int) -> list[Sample]:
    """Each branch has `length` tokens, the first `shared` of which are all branches'; half of the rest is sampled."""
    dice = np.random.default_rng(session)

    def ids(count: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return dice.integers(0, vocabulary, count).astype(np.int32)

    def some(count: int) -> Part:
        return msgspec.structs.replace(part(count), ids=ids(count))

    rest = length - shared
    tree = [turn(call("a", context=ids(shared - SAID)), parts=[some(SAID)])]
    tree += [
        turn(call(f"b{place}", "a", context=ids(rest - rest // 2)), parts=[some(rest // 2)])
        for place in range(branches)
    ]
    found = samples(msgspec.structs.replace(FACTS, id=f"s{session}"), tree)
    assert {len(sample.tokens) for sample in found} == {length}
    return found
