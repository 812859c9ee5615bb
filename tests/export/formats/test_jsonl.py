from __future__ import annotations

from collections.abc import Iterator

import msgspec
from hypothesis import given

from stenograph.core import Sample, Turn
from stenograph.export.formats import jsonl
from stenograph.export.sample import samples, to_bytes
from tests.export.trees import FACTS, call, trees, turn


@given(trees())
def test_one_sample_a_line_and_back(tree: list[Turn]) -> None:
    facts = msgspec.structs.replace(FACTS, metadata={"text": "two\nlines\r\u2028 and \x85 more"})
    found = samples(facts, tree)
    text = b"".join(jsonl.encode(found))
    lines = text.split(b"\n")
    assert lines.pop() == b""
    assert [to_bytes(sample) for sample in jsonl.decode(lines)] == [to_bytes(sample) for sample in found] == lines


def test_a_line_is_written_before_the_next_sample_is_asked_for() -> None:
    asked = 0

    def stored() -> Iterator[Sample]:
        nonlocal asked
        for _ in range(3):
            asked += 1
            yield from samples(FACTS, [turn(call("a"))])

    next(jsonl.encode(stored()))
    assert asked == 1
