"""An engine's own log: what it was sent and what it answered, before anything of ours has looked at it.

One JSON object a line. The record is compared with it (law 1), so it is written by the engine's side, and before the
last delta of a call is out: whoever has seen the end of an answer finds it here.
"""

from __future__ import annotations

import time
from io import FileIO
from pathlib import Path

import msgspec

from stenograph.core import JSON, EngineFinish, Finish, Request, Value


class LoggedChoice(Value):
    ids: tuple[JSON, ...] = ()
    logprobs: tuple[JSON, ...] = ()
    finish_reason: EngineFinish | None = None
    """None: it was not finished."""
    stop_reason: int | str | None = None


class LoggedCall(Value):
    request_id: str
    session_id: str
    prompt: list[int]
    n: int
    sampling: dict[str, JSON]
    choices: list[LoggedChoice]
    aborted: bool
    """The caller went away before the end."""
    at: float
    """Unix seconds, when the call arrived."""


class EngineLog:
    def __init__(self, path: Path | None) -> None:
        """`path`: None keeps no log. The file is opened with the first call."""
        self._path = path
        self._file: FileIO | None = None

    def write(self, call: LoggedCall) -> None:
        if self._path:
            self._file = self._file or FileIO(self._path, "ab")
            self._file.write(msgspec.json.encode(call) + b"\n")

    def close(self) -> None:
        if self._file:
            self._file.close()
            self._file = None


class Transcript:
    """One call on its way into the log: written once, when its last choice is finished or when it broke off."""

    def __init__(self, log: EngineLog, request: Request) -> None:
        self._log = log
        self._request = request
        self._at = time.time()
        self._ids: list[list[JSON]] = [[] for _ in range(request.n)]
        self._logprobs: list[list[JSON]] = [[] for _ in range(request.n)]
        self._finishes: dict[int, Finish] = {}
        self._written = False

    def heard(self, choice: int, ids: list[JSON], logprobs: list[JSON]) -> None:
        self._ids[choice] += ids
        self._logprobs[choice] += logprobs

    def finished(self, choice: int, finish: Finish) -> None:
        self._finishes[choice] = finish
        if len(self._finishes) == self._request.n:
            self.close(aborted=False)

    def close(self, *, aborted: bool) -> None:
        if not self._written:
            self._written = True
            self._log.write(self._call(aborted))

    def _call(self, aborted: bool) -> LoggedCall:
        return LoggedCall(
            request_id=self._request.id,
            session_id=self._request.session_id,
            prompt=self._request.prompt.tolist(),
            n=self._request.n,
            sampling=msgspec.to_builtins(self._request.sampling),
            choices=[self._choice(choice) for choice in range(self._request.n)],
            aborted=aborted,
            at=self._at,
        )

    def _choice(self, choice: int) -> LoggedChoice:
        finish = self._finishes.get(choice)
        return LoggedChoice(
            ids=tuple(self._ids[choice]),
            logprobs=tuple(self._logprobs[choice]),
            finish_reason=finish.reason if finish else None,
            stop_reason=finish.stop if finish else None,
        )
