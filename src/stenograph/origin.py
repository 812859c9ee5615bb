"""Where each sampled token comes from: which engine sampled it, and under which weights. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from stenograph.core import (
    Delta,
    EngineInfo,
    Ids,
    Logprobs,
    Note,
    NoteKind,
    Part,
    Value,
    VersionSource,
)


class Weights:
    """What a trainer says of the weights that the engines hold."""

    def __init__(self) -> None:
        self.version: str | None = None
        """The latest; None: nothing was said."""
        self._steps: dict[str, int | None] = {}

    def say(self, version: str, step: int | None) -> None:
        self.version = version
        self._steps[version] = step

    def step_of(self, version: str | None) -> int | None:
        """Also of a version that an engine reports: which step it is, only the trainer knows."""
        return self._steps.get(version) if version is not None else None


class Origin(Value):
    engine: str
    version: str | None
    source: VersionSource | None


class Origins:
    """Of one choice's tokens, in order. An engine's own word on its weights wins over the trainer's, also later."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._tokens: list[Origin] = []
        self._engines: dict[str, EngineInfo] = {}

    def take(self, delta: Delta) -> None:
        if delta.by is None:
            raise ValueError("a delta that nobody put a name to")
        self._engines[delta.by.name] = delta.by
        said = self._weights.version
        self._tokens += [Origin(delta.by.name, said, "caller" if said else None)] * len(delta.ids)
        end = len(self._tokens)
        for run in reversed(delta.versions):
            start = end - run.tokens
            self._tokens[start:end] = [Origin(one.engine, run.version, "engine") for one in self._tokens[start:end]]
            end = start

    def parts(self, ids: Ids, logprobs: Logprobs) -> tuple[Part, ...]:
        """What was sampled in one go, each. A choice without a token has no part."""
        parts: list[Part] = []
        start = 0
        for origin, run in groupby(self._tokens):
            end = start + sum(1 for _ in run)
            parts.append(self._part(origin, ids[start:end], logprobs[start:end]))
            start = end
        return tuple(parts)

    def _part(self, origin: Origin, ids: Ids, logprobs: Logprobs) -> Part:
        engine = self._engines[origin.engine]
        return Part(
            ids=ids,
            logprobs=logprobs,
            engine=engine.name,
            engine_kind=engine.kind,
            logprob_kind=engine.logprob_kind,
            weight_version=origin.version,
            step=self._weights.step_of(origin.version),
            version_source=origin.source,
        )


def moves(before: str | None, parts: Sequence[Part]) -> Iterator[Note]:
    """Each time that the session went on with another engine than the one that sampled its tokens until then."""
    engines = [*([before] if before is not None else []), *(part.engine for part in parts)]
    for left, right in pairwise(engines):
        if left != right:
            yield Note(NoteKind.ENGINE_MOVED, f"{left} to {right}")
