"""Samples on their way out of a store, with what it has of teachers; what it has not is counted, and said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from stenograph.core import Sample, Teacher
from stenograph.teacher.lessons import Recall, taught


class Lectures:
    def __init__(self, teachers: Sequence[Teacher], recall: Recall) -> None:
        self._teachers = teachers
        self._recall = recall
        self._samples = 0
        self._missing: Counter[tuple[str, str]] = Counter()

    def held(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        for sample in samples:
            self._samples += 1
            for teacher in self._teachers:
                sample = taught(sample, teacher, self._recall)
            for name, info in (sample.teacher_info or {}).items():
                if info.error is not None:
                    self._missing[name, info.error] += 1
            yield sample

    def said(self) -> Iterator[str]:
        for (name, error), count in self._missing.items():
            yield f"{count} of {self._samples} samples have nothing of teacher {name}: {error}"
