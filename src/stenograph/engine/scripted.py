"""An engine without a model: says what its script says, goes wrong where the script wants it, and logs every token.

It ships with the package because it is the measure of the house: what the record says is compared with this engine's
own log. In process it is an `Engine`; `scripted_server.py` puts the same one behind vLLM's HTTP.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

from stenograph.core import NEUTRAL, Delta, EngineInfo, Request, Value
from stenograph.engine.evidence import best_first, delta_from
from stenograph.engine.log import EngineLog, LoggedCall, Transcript
from stenograph.engine.logprob_kind import PROBE, is_probe
from stenograph.engine.plan import Planner
from stenograph.engine.raw import Raw, misreported, raws
from stenograph.engine.script import FaultKind, Script
from stenograph.errors import CallerError, ContextLengthExceeded, EngineError, EngineUnavailable, StenographError
from stenograph.render.tokenizer import Tokenizer

DEFAULT = Script()
MAX_TOP_LOGPROBS = 20
"""vLLM's own limit."""


class Severed(EngineError):
    """The connection is gone in the middle of an answer; `mid_line`: in the middle of a line of it."""

    def __init__(self, *, mid_line: bool) -> None:
        super().__init__("the connection was lost in the middle of the answer")
        self.mid_line = mid_line


AT_START: dict[FaultKind, Callable[[], StenographError]] = {
    FaultKind.FAIL_AT_START: lambda: EngineUnavailable("the script wants no engine here"),
    FaultKind.REFUSE: lambda: CallerError("the script refuses this call"),
    FaultKind.CRASH: lambda: EngineError("the script crashes at this call"),
}
MIDWAY: dict[FaultKind, Callable[[], EngineError]] = {
    FaultKind.FAIL_MIDWAY: lambda: EngineError("the script fails in the middle of this answer"),
    FaultKind.CUT: lambda: Severed(mid_line=False),
    FaultKind.HALF_LINE: lambda: Severed(mid_line=True),
}


class Log(EngineLog):
    """Kept in memory too, for whoever runs the engine in process."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path)
        self.calls: list[LoggedCall] = []

    def write(self, call: LoggedCall) -> None:
        if not call.request_id.startswith(PROBE):
            self.calls.append(call)
            super().write(call)


class Scene(Value):
    """A call that was admitted: all that will be answered, and what will go wrong on the way."""

    deltas: list[Raw]
    fault: FaultKind | None
    transcript: Transcript
    """Of what is said, which under a fault that misreports is not what is told."""


class ScriptedEngine:
    def __init__(
        self,
        script: Script = DEFAULT,
        tokenizer: Tokenizer | None = None,
        *,
        name: str = "scripted-0",
        log: Path | None = None,
    ) -> None:
        self.script = script
        self.weight_version = script.weight_version
        """Set it, and tokens from now on are reported under it."""
        self.gate = asyncio.Event()
        """While it is cleared, every generation waits before its next delta: how a test holds one in flight."""
        self.gate.set()
        self._name = name
        self._log = Log(log)
        self._planner = Planner(script, tokenizer)
        self._ordinals = itertools.count()

    @property
    def vocab_size(self) -> int:
        return self._planner.vocab_size

    @property
    def calls(self) -> list[LoggedCall]:
        """What was asked and answered so far, in the order in which the calls ended."""
        return self._log.calls

    async def start(self) -> EngineInfo:
        return EngineInfo(
            name=self._name,
            kind="scripted",
            model=self.script.model,
            max_model_len=self.script.max_model_len,
            logprob_kind=self.script.logprob_kind,
            supports=frozenset(NEUTRAL.__struct_fields__),
            guides=frozenset(self.script.guides),
            max_top_logprobs=MAX_TOP_LOGPROBS,
            vocab_size=self.vocab_size,
        )

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        async with aclosing(self.play(self.admit(request))) as deltas:
            async for raw in deltas:
                yield self._delta(raw, request.top_logprobs)

    async def healthy(self) -> bool:
        return True

    async def close(self) -> None:
        self._log.close()

    def admit(self, request: Request) -> Scene:
        """Takes the call's place in the order, or refuses it. A probe is no call: it has no place and no faults."""
        ordinal = None if is_probe(request) else next(self._ordinals)
        fault = None if ordinal is None else self.script.fault_of(ordinal)
        transcript = Transcript(self._log, request)
        if refusal := self._refusal(request, fault):
            transcript.close(aborted=False)
            raise refusal
        return Scene(raws(self._planner.plan(request, ordinal or 0), self.script.chunk), fault, transcript)

    async def play(self, scene: Scene) -> AsyncGenerator[Raw, None]:
        """As it goes onto the wire. The log is written before the last delta is out, or when the call breaks off."""
        try:
            if scene.fault is FaultKind.HANG:
                await asyncio.get_running_loop().create_future()
            for place, raw in enumerate(scene.deltas):
                await self._pause(first=place == 0)
                if place == len(scene.deltas) // 2 and scene.fault in MIDWAY:
                    scene.transcript.close(aborted=False)
                    raise MIDWAY[scene.fault]()
                _log(scene.transcript, raw)
                yield misreported(raw, scene.fault)
        finally:
            scene.transcript.close(aborted=True)

    async def _pause(self, *, first: bool) -> None:
        await self.gate.wait()
        await asyncio.sleep(self.script.first_delay if first else self.script.delay)

    def _refusal(self, request: Request, fault: FaultKind | None) -> StenographError | None:
        if fault in AT_START:
            return AT_START[fault]()
        if self._planner.room(request) > 0:
            return None
        limit, length = self.script.max_model_len, len(request.prompt)
        return ContextLengthExceeded(
            f"This model's maximum context length is {limit} tokens. However, your prompt contains {length} tokens."
        )

    def _delta(self, raw: Raw, top: int) -> Delta:
        return delta_from(
            choice=raw.choice,
            ids=raw.ids,
            logprobs=raw.logprobs,
            top=[best_first(row, top) for row in raw.rows] if top else None,
            finish=raw.finish,
            weight_version=self.weight_version,
        )


def _log(transcript: Transcript, raw: Raw) -> None:
    transcript.heard(raw.choice, list(raw.ids), raw.logprobs)
    if raw.finish:
        transcript.finished(raw.choice, raw.finish)
