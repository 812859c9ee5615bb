"""CONTRACT 5 as it stands: one sample a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stenograph.core import Sample


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    """A line at a time, each with its line feed, so that a store larger than memory can be exported."""
    from stenograph.export.sample import to_bytes

    for sample in samples:
        yield to_bytes(sample) + b"\n"


def decode(lines: Iterable[bytes]) -> Iterator[Sample]:
    from stenograph.export.sample import from_json

    for line in lines:
        yield from_json(line)
