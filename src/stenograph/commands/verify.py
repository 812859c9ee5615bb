"""`stenograph verify`: an engine scores what was recorded, and the two are compared."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from stenograph.audit.rescoring import Compared, NotCompared, checkable, compared
from stenograph.commands.stored import stored_sessions
from stenograph.commands.verify_text import text_of
from stenograph.config import engine_spec
from stenograph.core import EngineInfo, Sample
from stenograph.engine.engine import Engine
from stenograph.engine.logprob_kind import PLAIN
from stenograph.engine.scoring import Scoring
from stenograph.errors import CallerError, ConfigError, EngineError
from stenograph.export.sample import samples
from stenograph.furnish import connected
from stenograph.render.tokenizer import Tokenizer
from stenograph.store.sqlite import SqliteReader

AT_ONCE = 4
"""Sequences being scored: enough to keep an engine busy, few enough for its memory."""


def run(options: dict[str, Any]) -> int:
    found = _samples(options)
    verdicts, held, tokenizer = asyncio.run(_verified(found, options))
    spans = [one for one in verdicts if isinstance(one, Compared)]
    tolerance: float = options["tolerance"]
    print(text_of(verdicts, {sample.id: sample for sample in found}, tolerance, held, tokenizer))
    return 0 if spans and all(one.mean <= tolerance for one in spans) else 1


def _samples(options: dict[str, Any]) -> list[Sample]:
    with SqliteReader(Path(options["store"])) as reader:
        every = [
            sample
            for one in stored_sessions(reader, options.get("session"))
            for sample in samples(one.facts, [turn for call in one.calls for turn in call.turns])
        ]
    found = [sample for sample in every if checkable(sample)]
    if not found:
        raise ConfigError(f"--store {options['store']}: nothing was sampled in it")
    return found


async def _verified(
    found: Sequence[Sample], options: dict[str, Any]
) -> tuple[list[Compared | NotCompared], str | None, Tokenizer | None]:
    spec = engine_spec(options["engine"])
    engine, info, loaded = await connected(spec, options.get("tokenizer"))
    try:
        if not isinstance(engine, Scoring):
            raise ConfigError(f"--engine {options['engine']}: it cannot score; vllm, sglang and torch can")
        held = await _version_of(engine) or options.get("weights")
        verdicts = await _rescored(engine, info, found, held)
    finally:
        await engine.close()
    return verdicts, held, loaded[1] if loaded else None


async def _version_of(engine: Engine) -> str | None:
    """Engines that know it say so with every token."""
    one = msgspec.structs.replace(PLAIN, top_logprobs=0)
    async with aclosing(engine.generate(one)) as deltas:
        versions = [run.version async for delta in deltas for run in delta.versions]
    return versions[-1] if versions else None


async def _rescored(
    engine: Scoring, info: EngineInfo, found: Sequence[Sample], held: str | None
) -> list[Compared | NotCompared]:
    ambiguous = held is None and len({span.weight_version for sample in found for span in checkable(sample)}) > 1
    turn, done = asyncio.Semaphore(AT_ONCE), 0

    async def one(sample: Sample) -> list[Compared | NotCompared]:
        nonlocal done
        async with turn:
            why = UNTOLD if ambiguous else _does_not_fit(sample, info)
            verdicts = _left_out(sample, why) if why else await _of(sample)
        done += 1
        _tell(done, len(found))
        return verdicts

    async def _of(sample: Sample) -> list[Compared | NotCompared]:
        try:
            return list(compared(sample, await engine.score(sample.tokens, 0), held))
        except CallerError as error:
            return _left_out(sample, f"the engine refuses it: {error.message}")

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(sample)) for sample in found]
    except* EngineError as failures:
        error = failures.exceptions[0]
        raise ConfigError(f"the engine failed while it scored: {error}") from error
    return [verdict for task in tasks for verdict in task.result()]


UNTOLD = "the engine does not say which weights it has, and there are several versions: say it with --weights"


def _does_not_fit(sample: Sample, info: EngineInfo) -> str | None:
    """One token is left for the engine to sample: there are engines that have to."""
    if len(sample.tokens) >= info.max_model_len:
        return f"it has {len(sample.tokens)} tokens, and the engine's context holds {info.max_model_len}"
    if info.vocab_size is not None and int(sample.tokens.max()) >= info.vocab_size:
        return "it has ids that the engine's vocabulary does not have"
    return None


def _left_out(sample: Sample, why: str) -> list[Compared | NotCompared]:
    return [NotCompared(sample.id, span, why) for span in checkable(sample)]


def _tell(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{done}/{total} samples scored", end="\n" if done == total else "", file=sys.stderr, flush=True)
