"""What the scripted engine is told to do: a value, and the file that holds it. A misspelt key in it is an error."""

from __future__ import annotations

import enum
import re
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from stenograph.core import GuideKind, LogprobKind, Value
from stenograph.errors import ConfigError

Chance: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Ordinal: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class FaultKind(enum.StrEnum):
    FAIL_AT_START = "fail_at_start"
    """No engine there: EngineUnavailable, HTTP 503."""
    REFUSE = "refuse"
    """The caller is at fault: CallerError, HTTP 400."""
    CRASH = "crash"
    """The engine is at fault: EngineError, HTTP 500."""
    FAIL_MIDWAY = "fail_midway"
    """An error after half of the answer: EngineError, over HTTP an error event in the stream."""
    CUT = "cut"
    """The connection is gone after half of the answer. In process: EngineError, as for `half_line`."""
    HALF_LINE = "half_line"
    """The connection is gone in the middle of a line of JSON."""
    HANG = "hang"
    """Never answers; ends when the caller goes away."""
    MISSING_LOGPROB = "missing_logprob"
    SHORT_LOGPROBS = "short_logprobs"
    LONG_LOGPROBS = "long_logprobs"
    POSITIVE = "positive"
    NAN = "nan"
    SENTINEL = "sentinel"
    BAD_ID = "bad_id"
    WRONG_CHOICE = "wrong_choice"
    NEVER_FINISH = "never_finish"


class Fault(Value, frozen=True, forbid_unknown_fields=True):
    """Goes wrong at the calls that it names, counted from 0 as they arrive."""

    kind: FaultKind
    call: Ordinal | None = None
    """This call only. Exactly one of `call` and `every` is set."""
    every: Count | None = None
    """Each n-th call; 1: all of them."""

    def __post_init__(self) -> None:
        if (self.call is None) == (self.every is None):
            raise ValueError("a fault has either `call` or `every`")

    def strikes(self, ordinal: int) -> bool:
        return ordinal == self.call if self.every is None else (ordinal + 1) % self.every == 0


class Rule(Value, frozen=True, forbid_unknown_fields=True):
    when: str
    """A regular expression, searched for in the text of the prompt's last `TAIL` tokens."""
    say: str

    def __post_init__(self) -> None:
        try:
            re.compile(self.when)
        except re.error as error:
            raise ValueError(f"`when` is no regular expression: {error}") from error


class Script(Value, frozen=True, forbid_unknown_fields=True):
    """How a fake model behaves. Everything random in it follows from `seed` and the order of the calls alone, or, for
    a request that has a seed of its own, from both seeds and the prompt."""

    seed: int = 0
    model: str = "scripted"
    max_model_len: Count = 8192
    vocab_size: Count = 1024
    """Of the random ids that are spoken where there is no tokenizer; with one it is the tokenizer's own."""
    eos: Ordinal | None = None
    """The model's own end of sequence. It closes a reply where the request has no stop ids."""
    rules: tuple[Rule, ...] = ()
    """The first that matches is spoken."""
    replies: tuple[str | tuple[Ordinal, ...], ...] = ()
    """Spoken in turn, each session from the first one on, and over again; the choices of a call take one each.
    Texts need a tokenizer; their markers become control ids. Ids are spoken as they stand. None: random words."""
    longest: Count = 40
    """Words of a random reply, at most."""
    cut: Chance = 0.3
    """How likely a token is spelt with two smaller ones, so that encoding the text again gives other ids."""
    logprob_kind: LogprobKind = "raw"
    first_delay: Seconds = 0.0
    """Before the first token of a call."""
    delay: Seconds = 0.0
    """Before each further delta."""
    chunk: Count = 1
    """Tokens a delta."""
    guides: tuple[GuideKind, ...] = ("json", "object", "regex", "choice", "grammar", "tag")
    """To which kinds of guide this engine holds a reply. What meets one is said where there is no rule and no reply."""
    weight_version: str | None = None
    """Reported with every delta, in process. vLLM's completions have no place for it."""
    beside: bool = False
    """Tells of each token which others could have been drawn, and of each computed one its experts: over
    `/inference/v1/generate` alone, where there is a place for it. Both follow from the ids (see `scripted_beside`)."""
    faults: tuple[Fault, ...] = ()

    def fault_of(self, ordinal: int) -> FaultKind | None:
        return next((fault.kind for fault in self.faults if fault.strikes(ordinal)), None)

    def needs_tokenizer(self) -> bool:
        return bool(self.rules) or any(isinstance(reply, str) for reply in self.replies)


def load(path: Path) -> Script:
    """From TOML, or from JSON where the file is named so."""
    decode = msgspec.json.decode if path.suffix == ".json" else msgspec.toml.decode
    try:
        return decode(path.read_bytes(), type=Script)
    except OSError as error:
        raise ConfigError(f"cannot read the script {path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the script {path} cannot be used: {error}") from error
