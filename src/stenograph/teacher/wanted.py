"""What is asked of a teacher about a sample: of which positions, how many alternatives, and by what names the answers
are kept. Pure, and the same whether it is asked now or read from a store."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence

import msgspec

from stenograph.core import JSON, Ids, Sample, Teacher, Value
from stenograph.engine.scoring import FIRST
from stenograph.errors import CallerError
from stenograph.teacher.framing import filled

OVERRIDES = "group_overrides"
"""The key of a session's metadata under which Atropos' environments say what differs for their group."""


class Run(Value):
    """Some tokens in a row, as one lesson has them."""

    start: int
    end: int
    """Half open, indices into the sample's tokens."""
    key: str

    @property
    def size(self) -> int:
        return self.end - self.start


class Wanted(Value):
    top_k: int
    runs: tuple[Run, ...]
    whole: str
    """The key under which it is noted that the sequence could not be scored."""


class Overrides(Value):
    teacher_top_k: int | None = None
    skip_teacher_top_k: bool = False


def overrides(sample: Sample) -> Overrides:
    try:
        return msgspec.convert(sample.metadata.get(OVERRIDES) or {}, Overrides)
    except msgspec.ValidationError as error:
        raise CallerError(f"{OVERRIDES}: {error}") from error


def wanted(teacher: Teacher, sample: Sample) -> Wanted:
    """Raises a `CallerError` where the teacher cannot be asked about this one."""
    said = overrides(sample)
    top_k = teacher.top_k if said.teacher_top_k is None else said.teacher_top_k
    if top_k < 0:
        raise CallerError(f"{OVERRIDES}: teacher_top_k is {top_k}")
    # Under another context the first prompt is another text: the teacher is asked from where the student speaks.
    since = FIRST if teacher.framing is None else max(FIRST, spoken(sample))
    stretches = _sampled(sample, since) if teacher.positions == "sampled" else _all(sample, since)
    keys = _Keys(teacher, sample)
    runs = tuple(Run(start, end, keys.of(start, end)) for start, end in stretches)
    return Wanted(top_k, runs, keys.of(0, len(sample.tokens)))


def spoken(sample: Sample) -> int:
    """Where the first sampled token stands."""
    return sample.spans[0].start if sample.spans else len(sample.tokens)


def _sampled(sample: Sample, since: int) -> Iterator[tuple[int, int]]:
    stretches = ((max(span.start, since), span.end) for span in sample.spans)
    return ((start, end) for start, end in stretches if start < end)


def _all(sample: Sample, since: int) -> Iterator[tuple[int, int]]:
    """Cut where spans begin and end, for there branches part: what they share is one lesson."""
    borders = {border for span in sample.spans for border in (span.start, span.end) if border > since}
    edges = sorted({since, *borders, max(since, len(sample.tokens))})
    return itertools.pairwise(edges)


class _Keys:
    """A hash along the ids, which is read off where a run ends: all keys of a sample cost one pass."""

    def __init__(self, teacher: Teacher, sample: Sample) -> None:
        self._ids: Ids = sample.tokens
        self._hash = hashlib.blake2b(msgspec.json.encode(_identity(teacher, sample)), digest_size=16)
        self._read = 0

    def of(self, start: int, end: int) -> str:
        """Runs are asked for in order."""
        self._hash.update(self._ids[self._read : end].tobytes())
        self._read = end
        named = self._hash.copy()
        named.update(start.to_bytes(8))
        return named.hexdigest()


def _identity(teacher: Teacher, sample: Sample) -> Sequence[JSON]:
    """Whatever its words depend on, besides the ids."""
    framing = teacher.framing and filled(teacher.framing, sample.metadata)
    return [teacher.name, teacher.model, framing, teacher.template_hash]
