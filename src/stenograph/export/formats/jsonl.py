"""CONTRACT 5 as it stands: one sample a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stenograph.core import Sample
from stenograph.export.sample import from_json, to_bytes


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    """A line at a time, each with its line feed, so that a store larger than memory can be exported."""
    for sample in samples:
        yield to_bytes(sample) + b"\n"


def decode(lines: Iterable[bytes]) -> Iterator[Sample]:
    for line in lines:
        yield from_json(line)
