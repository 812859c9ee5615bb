"""Where each sampled token comes from: which engine sampled it, and under which weights. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from stenograph.core import (
    Delta,
    EngineInfo,
    Ids,
    Logprobs,
    Note,
    NoteKind,
    Part,
    Turn,
    Value,
    VersionSource,
)


class Weights:
    """What a trainer says of the weights that the engines hold."""

    def __init__(self) -> None:
        self.version: str | None = None
        """The latest; None: nothing was said."""
        self._steps: dict[str, int | None] = {}
        """Of every version that was said, the latest last."""

    def say(self, version: str, step: int | None) -> None:
        self.version = version
        self.recall(version, step)

    def recall(self, version: str, step: int | None) -> None:
        """What was said to an earlier process. It is history: what the engines hold today, nobody has said yet."""
        self._steps.pop(version, None)
        self._steps[version] = step

    def step_of(self, version: str | None) -> int | None:
        """Also of a version that an engine reports: which step it is, only the trainer knows."""
        return self._steps.get(version) if version is not None else None

    def age(self, part: Part) -> int:
        """By how many steps the weights have moved on since; where a step was not said, by how many versions.

        A version that nobody has said is as old as all that was said: that it is newer cannot be shown.
        """
        if not self._steps:
            return 0
        versions = list(self._steps)
        now, then = self._steps[versions[-1]], part.step
        if then is None:
            then = self.step_of(part.weight_version)
        if now is not None and then is not None:
            return max(0, now - then)
        said = part.weight_version in self._steps
        return len(versions) - 1 - versions.index(part.weight_version or "") if said else len(versions)


def staleness(turns: Iterable[Turn], weights: Weights) -> int:
    """Of the oldest token that was sampled; 0 where none was."""
    return max((weights.age(part) for turn in turns for part in turn.parts if len(part.ids)), default=0)


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
