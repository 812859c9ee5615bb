"""vLLM's `/v1/completions` in tokens: a request's body, and deltas out of a stream's events. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from stenograph.core import JSON, Delta, Finish, Guide, GuideKind, Request, Sampling
from stenograph.engine.evidence import best_first, delta_from
from stenograph.engine.http import ErrorBody
from stenograph.errors import CallerError, EngineError, EvidenceError

SUPPORTS = (
    *("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "seed"),
    *("max_tokens", "min_tokens", "stop", "stop_token_ids", "ignore_eos", "logit_bias"),
)
"""Named as in `Sampling`, which took its names from here."""
GUIDES: dict[GuideKind, str] = {
    "json": "json",
    "object": "json_object",
    "regex": "regex",
    "choice": "choice",
    "grammar": "grammar",
    "tag": "structural_tag",
}
"""Named as in vLLM's `structured_outputs`."""
FIXED: dict[str, JSON] = {
    "stream": True,
    "stream_options": {"include_usage": True},
    "return_token_ids": True,
    "return_tokens_as_token_ids": True,
    "add_special_tokens": False,
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "include_stop_str_in_output": False,
    "echo": False,
    "use_beam_search": False,
    "watermarking": False,
}
"""Special tokens count as text, without spaces around them, so that stop strings are looked for in what was sampled.
Watermarking is an option of the server's that alters the distribution."""
PATH = "/v1/completions"
TOKEN = "token_id:"
COOLEST = 0.01
"""A temperature between 0 and this is raised to this, and only vLLM's own log says so."""
STRONGEST = 100.0
"""A bias beyond is cut, silently."""
ECHO = b'"prompt_token_ids":'
"""Inside of a string its quotes would have backslashes: where this stands, it is the field."""
AS_SENT = msgspec.json.encode(secrets.token_hex(16))
"""Put in the place of an echo that was found to be the prompt; no engine can say it."""


def body_of(request: Request, model: str, prompt: msgspec.Raw) -> bytes:
    """Every parameter is written out: what is left out, vLLM takes from the model's `generation_config`."""
    fields = {
        **FIXED,
        **sampling_fields(request.sampling),
        "model": model,
        "prompt": prompt,
        "n": request.n,
        "logprobs": request.top_logprobs,
        "request_id": request.id,
        "session_id": request.session_id or None,
    }
    return msgspec.json.encode(fields)


def sampling_fields(sampling: Sampling) -> dict[str, JSON]:
    _refuse_what_would_be_altered(sampling)
    fields = {name: getattr(sampling, name) for name in SUPPORTS}
    return fields if sampling.guide is None else fields | {"structured_outputs": _structured(sampling.guide)}


def _structured(guide: Guide) -> dict[str, JSON]:
    match guide.kind:
        case "object":
            value: JSON = True
        case "tag":
            value = msgspec.json.encode(guide.value).decode()
        case _:
            value = guide.value
    return {GUIDES[guide.kind]: value}


def _refuse_what_would_be_altered(sampling: Sampling) -> None:
    if 0 < sampling.temperature < COOLEST:
        raise CallerError(f"vLLM has no temperature between 0 and {COOLEST}", param="temperature")
    if any(abs(bias) > STRONGEST for bias in sampling.logit_bias.values()):
        raise CallerError(f"a bias is within {STRONGEST} of 0", param="logit_bias")
    if sampling.seed == -1:
        raise CallerError("vLLM takes the seed -1 for none", param="seed")


class _Logprobs(msgspec.Struct):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]


NOTHING, NULL = msgspec.Raw(), msgspec.Raw(b"null")


class _Choice(msgspec.Struct):
    index: int
    token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    prompt_token_ids: msgspec.Raw = NOTHING


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: _PromptDetails | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: Usage | None = None
    error: ErrorBody | None = None


class _AnyChunk(Protocol):
    @property
    def choices(self) -> Sequence[object]: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def error(self) -> ErrorBody | None: ...


C = TypeVar("C", bound=_AnyChunk)


class StreamReader(Generic[C]):
    """What one stream says, event by event. Raises `Refusal` where vLLM reports an error in the middle of it."""

    chunk: type[C]

    def __init__(self, label: str, request: Request, prompt: msgspec.Raw) -> None:
        self.label = label
        self.top = request.top_logprobs
        self._prompt = bytes(prompt)
        self._prompt_tokens = len(request.prompt)
        self._tokens = 0
        self._done = False

    def deltas(self, chunk: C) -> Iterator[Delta]:
        raise NotImplementedError

    def read(self, data: bytes) -> Iterator[Delta]:
        if data == b"[DONE]":
            self._done = True
            return
        chunk = self._decode(data)
        if chunk.error:
            raise chunk.error.refusal(chunk.error.code if type(chunk.error.code) is int else 500)
        yield from self.deltas(chunk)
        if chunk.usage and not chunk.choices:
            yield self._account(chunk.usage)

    def close(self) -> None:
        if not self._done:
            raise EvidenceError(f"{self.label} ended its answer before it was complete")

    def count(self, tokens: int) -> None:
        self._tokens += tokens

    def compare_prompt(self, echo: msgspec.Raw) -> None:
        """vLLM echoes the ids that it read: proof of what was sampled from. Compared as values where it prints them
        otherwise than they were sent."""
        if bytes(echo) in (AS_SENT, self._prompt):
            return
        if echo == NOTHING or msgspec.json.decode(echo, type=JSON) != msgspec.json.decode(self._prompt):
            raise EvidenceError(f"{self.label} does not confirm the prompt that it was sent")

    def finish(self, reason: str | None, stop: int | str | None) -> Finish | None:
        match reason:
            case None:
                return None
            case "stop" | "length" | "abort":
                return Finish(reason, stop)
            case other:
                raise EngineError(f"{self.label} ended a choice with {other!r}")

    def _decode(self, data: bytes) -> C:
        try:
            return msgspec.json.decode(self._shortened(data), type=self.chunk)
        except msgspec.DecodeError as error:
            raise EvidenceError(f"{self.label} answered what cannot be read: {error}") from error

    def _shortened(self, data: bytes) -> bytes:
        """A long prompt's echo is most of an event, and compared as bytes it need not be parsed."""
        start = data.find(ECHO) + len(ECHO)
        if start < len(ECHO) or not data.startswith(self._prompt, start):
            return data
        return data[:start] + AS_SENT + data[start + len(self._prompt) :]

    def _account(self, usage: Usage) -> Delta:
        """The last chunk: vLLM's own count, and what it had in its cache where it is told to say so."""
        if (usage.prompt_tokens, usage.completion_tokens) != (self._prompt_tokens, self._tokens):
            raise EvidenceError(
                f"{self.label} counts {usage.prompt_tokens} + {usage.completion_tokens} tokens, "
                f"sent were {self._prompt_tokens}, received {self._tokens}"
            )
        details = usage.prompt_tokens_details
        return delta_from(choice=0, ids=[], logprobs=[], cached_tokens=details.cached_tokens if details else None)


class Reader(StreamReader[_Chunk]):
    chunk = _Chunk

    def __init__(self, label: str, request: Request, prompt: msgspec.Raw) -> None:
        super().__init__(label, request, prompt)
        self._confirmed = False

    def deltas(self, chunk: _Chunk) -> Iterator[Delta]:
        yield from map(self._delta, chunk.choices)

    def _delta(self, choice: _Choice) -> Delta:
        """The prompt is echoed with each choice's first chunk, or with the first of all: it is the same for all."""
        if not self._confirmed or choice.prompt_token_ids not in (NOTHING, NULL):
            self.compare_prompt(choice.prompt_token_ids)
            self._confirmed = True
        ids, logprobs = choice.token_ids, choice.logprobs
        if ids and logprobs and logprobs.tokens != [f"{TOKEN}{id}" for id in ids]:
            raise EvidenceError(f"choice {choice.index}: the logprobs are of other tokens than the ids")
        self.count(len(ids or ()))
        return delta_from(
            choice=choice.index,
            ids=ids,
            logprobs=logprobs and logprobs.token_logprobs,
            top=[self._row(row) for row in logprobs.top_logprobs] if self.top and logprobs else None,
            finish=self.finish(choice.finish_reason, choice.stop_reason),
        )

    def _row(self, row: dict[str, float] | None) -> list[tuple[int, float]] | None:
        """Up to k + 1 entries, the sampled token first, whether it is among the best or not."""
        if row is None:
            return None
        if not all(key.startswith(TOKEN) and key[len(TOKEN) :].isdecimal() for key in row):
            raise EvidenceError(f"{self.label} does not name the alternatives by their ids")
        return best_first({int(key[len(TOKEN) :]): logprob for key, logprob in row.items()}, self.top)
