"""SGLang's `/generate` in tokens: a request's body, and deltas out of a stream's events. Pure.

Its habits, and what is done about them:
- A stream repeats all that came before, in every chunk, unless the server was started with
  `--incremental-streaming-output`. Each chunk counts the tokens so far, so which of the two it is shows in the data.
- `n` hides the names by which a choice could be aborted: a call of n choices is n calls.
- A stop at the model's own end names the id as any other stop does.
- Two seconds behind the end of a stream it aborts whatever bears that stream's `rid` by then: no `rid` is used twice.
- `ignore_eos` switches off stop ids, too, and a seed counts only under `--enable-deterministic-inference`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import Any

import msgspec
from numpy.typing import NDArray

from stenograph.core import JSON, Delta, Finish, Guide, GuideKind, Ids, Request, Value, VersionRun
from stenograph.engine.beside import experts_in_raw, support_of, told_from
from stenograph.engine.ebnf import alternatives
from stenograph.engine.evidence import best_first, delta_from
from stenograph.engine.http import ErrorBody
from stenograph.engine.scoring import Scored, scored_from
from stenograph.errors import CallerError, EngineError, EvidenceError

SUPPORTS = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"),
        *("max_tokens", "min_tokens", "stop", "stop_token_ids", "ignore_eos", "logit_bias"),
    }
)
GUIDES: frozenset[GuideKind] = frozenset({"json", "object", "regex", "choice", "grammar", "tag"})
COOLEST = 1e-6
"""A temperature between 0 and this is taken for 0, silently."""
UNTOLD = "default"
"""The version of weights that nobody has given one."""
REPEATED_EVERY = 16
"""Tokens a chunk, where each repeats all before it: a reply of N tokens costs N²/32 of them on the wire, not N²/2."""


class Offers(Value):
    """What a server tells beside tokens, if it is asked to."""

    masks_up_to: int = 0
    """Of so many tokens at most; 0: none."""
    experts: bool = False


def body_of(request: Request, choice: int, rid: str, interval: int, offers: Offers) -> bytes:
    """Every parameter is written out: what is left out, SGLang takes from the model's `generation_config`."""
    sampling = request.sampling
    if 0 < sampling.temperature < COOLEST:
        raise CallerError(f"SGLang takes a temperature below {COOLEST} for 0", param="temperature")
    if sampling.ignore_eos and sampling.stop_token_ids:
        raise CallerError("SGLang's ignore_eos ignores stop ids, too", param="ignore_eos")
    parameters: dict[str, JSON] = {
        "max_new_tokens": sampling.max_tokens,
        "min_new_tokens": sampling.min_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k or -1,
        "min_p": sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "stop": list(sampling.stop),
        "stop_token_ids": list(sampling.stop_token_ids),
        "ignore_eos": sampling.ignore_eos,
        "logit_bias": {str(id): bias for id, bias in sampling.logit_bias.items()} or None,
        "sampling_seed": None if sampling.seed is None else (sampling.seed + choice) % 2**63,
        "stream_interval": interval,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "no_stop_trim": True,
        "n": 1,
        **(_held(sampling.guide) if sampling.guide else {}),
    }
    fields: dict[str, JSON] = {
        "rid": rid,
        "input_ids": request.prompt.tolist(),
        "sampling_params": parameters,
        "stream": True,
        "return_logprob": True,
        "logprob_start_len": -1,
        "top_logprobs_num": request.top_logprobs,
        "return_text_in_logprobs": False,
    }
    if 0 < sampling.top_k <= offers.masks_up_to:
        fields["return_sampling_mask"] = True
    if offers.experts:
        fields |= {"return_routed_experts": True, "routed_experts_start_len": told_from(request)}
    return msgspec.json.encode(fields)


def _held(guide: Guide) -> dict[str, JSON]:
    """As texts, all of them."""
    match guide.kind:
        case "json" | "object":
            schema = guide.value if guide.kind == "json" else {"type": "object"}
            return {"json_schema": msgspec.json.encode(schema).decode()}
        case "tag":
            return {"structural_tag": msgspec.json.encode(guide.value).decode()}
        case "choice":
            return {"ebnf": alternatives(guide.value)}
        case "grammar":
            return {"ebnf": guide.value}
        case "regex":
            return {"regex": guide.value}


class _Finish(msgspec.Struct):
    type: str
    matched: int | str | None = None
    message: str = ""
    status_code: int | None = None


class _Version(msgspec.Struct):
    version: str
    start: int
    end: int


class _Meta(msgspec.Struct):
    completion_tokens: int
    prompt_tokens: int | None = None
    """Missing, or 0, where a request is aborted in SGLang's queue."""
    finish_reason: _Finish | None = None
    cached_tokens: int | None = None
    output_token_logprobs: list[list[JSON]] = []
    output_top_logprobs: list[list[list[JSON]] | None] = []
    weight_version: str | None = None
    weight_versions: list[_Version] | None = None
    output_token_sampling_mask: list[JSON] | None = None
    routed_experts: str | None = None

    @property
    def aborted(self) -> bool:
        return self.finish_reason is not None and self.finish_reason.type == "abort"


class _Chunk(msgspec.Struct):
    output_ids: list[JSON] = []
    meta_info: _Meta | None = None
    error: ErrorBody | None = None


class Reader:
    """What one choice's stream says, event by event. Raises `Refusal` where SGLang reports an error in its middle."""

    def __init__(self, label: str, request: Request, choice: int) -> None:
        self._label = label
        self._request = request
        self._choice = choice
        self._seen = 0
        """Tokens that are out."""
        self._repeats: dict[str, bool] = {}
        """Whether a chunk holds all that came before it: of ids and of logprobs, once a second chunk has shown it. With
        a wrong count the same chunk would be right the other way."""
        self._done = False

    def read(self, data: bytes) -> Iterator[Delta]:
        if data == b"[DONE]":
            self._done = True
            return
        chunk = self._decode(data)
        meta = self._meta(chunk)
        fresh = self._fresh(chunk.output_ids, meta, "token ids")
        logprobs = self._fresh(meta.output_token_logprobs, meta, "logprobs")
        if any(len(entry) < 2 for entry in logprobs) or [entry[1] for entry in logprobs] != fresh:
            raise EvidenceError(f"choice {self._choice}: the logprobs are of other tokens than the ids")
        top = self._top(meta) if self._request.top_logprobs else None
        support, experts = self._support(meta), self._experts(meta)
        self._seen = meta.completion_tokens
        yield delta_from(
            choice=self._choice,
            ids=fresh,
            logprobs=[entry[0] for entry in logprobs],
            top=top,
            finish=self._finish(meta.finish_reason),
            weight_version=_told(meta.weight_version) if meta.weight_versions is None else None,
            versions=tuple(_runs(meta.weight_versions or ())),
            cached_tokens=meta.cached_tokens,
            support=support,
            experts=experts,
        )

    def close(self) -> None:
        if not self._done:
            raise EvidenceError(f"{self._label} ended its answer before it was complete")

    def _decode(self, data: bytes) -> _Chunk:
        try:
            return msgspec.json.decode(data, type=_Chunk)
        except msgspec.DecodeError as error:
            raise EvidenceError(f"{self._label} answered what cannot be read: {error}") from error

    def _meta(self, chunk: _Chunk) -> _Meta:
        meta = chunk.meta_info
        if chunk.error:
            raise chunk.error.refusal(chunk.error.code if type(chunk.error.code) is int else 500)
        if meta is None:
            raise EvidenceError(f"{self._label} answered without its `meta_info`")
        if meta.aborted and meta.finish_reason and meta.finish_reason.status_code:
            raise ErrorBody(meta.finish_reason.message).refusal(meta.finish_reason.status_code)
        if meta.prompt_tokens != len(self._request.prompt) and not (meta.aborted and not meta.prompt_tokens):
            raise EvidenceError(
                f"{self._label} read {meta.prompt_tokens} tokens of a prompt of {len(self._request.prompt)}"
            )
        return meta

    def _fresh(self, values: list[JSON], meta: _Meta, what: str) -> list[JSON]:
        """What is new in a chunk: all of it, or what is behind the part that it repeats. Nothing else is possible, but
        that an abort out of the queue, to where a request may have been retracted, repeats the last token alone."""
        total = meta.completion_tokens
        if meta.aborted and total == self._seen:
            return []
        repeats = self._repeats.setdefault(what, len(values) == total) if self._seen else True
        if len(values) != (total if repeats else total - self._seen):
            raise EvidenceError(
                f"choice {self._choice}: {self._label} counts {total} tokens, {self._seen} were there and "
                f"{len(values)} {what} came"
            )
        return values[self._seen :] if repeats else values

    def _top(self, meta: _Meta) -> list[list[tuple[int, float]]]:
        rows = self._fresh(meta.output_top_logprobs, meta, "rows of top logprobs")
        if None in rows:
            raise EvidenceError(f"{self._label} leaves out the alternatives of a token")
        return [best_first(_by_id(self._label, row), self._request.top_logprobs) for row in rows]

    def _support(self, meta: _Meta) -> tuple[Ids, ...] | None:
        rows = meta.output_token_sampling_mask
        if rows is None:
            return None
        fresh = self._fresh(rows, meta, "rows of a sampling mask")
        return support_of(f"choice {self._choice}", fresh)

    def _experts(self, meta: _Meta) -> NDArray[Any] | None:
        rows = len(self._request.prompt) - told_from(self._request) + meta.completion_tokens - 1
        return experts_in_raw(f"choice {self._choice}", meta.routed_experts, rows)

    def _finish(self, finish: _Finish | None) -> Finish | None:
        if finish is None:
            return None
        if isinstance(finish.matched, str) and finish.matched not in self._request.sampling.stop:
            raise EngineError(f"{self._label} ended a choice: {finish.matched}")
        asked = isinstance(finish.matched, str) or finish.matched in self._request.sampling.stop_token_ids
        match finish.type:
            case "stop" | "length" | "abort" as reason:
                return Finish(reason, finish.matched if asked else None)
            case other:
                raise EngineError(f"{self._label} ended a choice with {other!r}")


def _by_id(label: str, row: Sequence[Sequence[JSON]]) -> dict[int, JSON]:
    """Entries of logprob, id and text."""
    if any(len(entry) < 2 or type(entry[1]) is not int for entry in row):
        raise EvidenceError(f"{label} names an alternative by what is no id")
    return {entry[1]: entry[0] for entry in row}


def _told(version: str | None) -> str | None:
    return None if version == UNTOLD else version


def _runs(spans: Sequence[_Version]) -> Iterator[VersionRun]:
    """Of the whole reply so far. Those at its beginning that nobody gave a version are left to what a trainer says."""
    told = dropwhile(lambda span: span.version == UNTOLD, spans)
    return (VersionRun(span.version, span.end - span.start) for span in told if span.end > span.start)


# ----------------------------------------------------------------------------------------------------------- scores


def score_body(ids: list[int], top_k: int, start: int) -> bytes:
    """Told is from the token before `start` on, whose own score is none; what is before may come from the cache."""
    fields: dict[str, JSON] = {
        "input_ids": ids,
        "sampling_params": {"max_new_tokens": 0, "temperature": 1.0},
        "return_logprob": True,
        "logprob_start_len": start - 1,
        "top_logprobs_num": top_k,
        "return_text_in_logprobs": False,
    }
    return msgspec.json.encode(fields)


class _ScoreMeta(msgspec.Struct):
    input_token_logprobs: list[list[JSON]]
    input_top_logprobs: list[list[list[JSON]] | None] = []
    cached_tokens: int | None = None


class _ScoreAnswer(msgspec.Struct):
    meta_info: _ScoreMeta


def scores_of(label: str, ids: list[int], top_k: int, start: int, answer: bytes) -> Scored:
    try:
        meta = msgspec.json.decode(answer, type=_ScoreAnswer).meta_info
    except msgspec.DecodeError as error:
        raise EvidenceError(f"{label} answered what cannot be read: {error}") from error
    if [entry[1:2] for entry in meta.input_token_logprobs] != [[id] for id in ids[start - 1 :]]:
        raise EvidenceError(f"{label} scored other tokens than it was sent")
    logprobs = [entry[0] for entry in meta.input_token_logprobs[1:]]
    tops = [_by_id(label, row or ()) for row in meta.input_top_logprobs[1:]]
    return scored_from(label, ids, start, logprobs, tops, top_k, meta.cached_tokens)
