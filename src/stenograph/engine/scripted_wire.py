"""vLLM's `/v1/completions` from the other side: a body as a request, and what the scripted engine says as JSON.

The shapes were taken down from vLLM 0.32, run with `--return-tokens-as-token-ids`. Values that a fault made up pass
through as they are, and so break whatever they break.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Sequence

import msgspec
import numpy as np

from stenograph.core import JSON, Request, Sampling
from stenograph.engine.evidence import SENTINEL
from stenograph.engine.odds import Row
from stenograph.engine.raw import Raw
from stenograph.engine.vllm_wire import GUIDES
from stenograph.errors import CallerError, StenographError

MAX_TOKENS = 16
"""OpenAI's default, and vLLM's."""


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False


class Body(msgspec.Struct):
    """What is no sampling parameter. Fields that it does not know vLLM accepts, and so does this."""

    prompt: list[int]
    model: str | None = None
    n: int = 1
    logprobs: int | None = None
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    return_token_ids: bool = False
    request_id: str = msgspec.field(default_factory=lambda: uuid.uuid4().hex)
    session_id: str = ""


def parse(raw: bytes, vocab_size: int) -> tuple[Body, Request]:
    try:
        given = msgspec.json.decode(raw, type=dict[str, JSON])
        fields = {"max_tokens": MAX_TOKENS} | {name: value for name, value in given.items() if value is not None}
        if isinstance(fields.get("stop"), str):
            fields["stop"] = [fields["stop"]]
        fields["guide"] = guide_of(fields.get("structured_outputs") or {})
        body = msgspec.convert(fields, Body)
        sampling = msgspec.convert(fields, Sampling, str_keys=True)
    except msgspec.DecodeError as error:
        raise CallerError(f"1 validation error: {error}") from error
    in_vocabulary(body.prompt, vocab_size)
    prompt = np.array(body.prompt, np.int32)
    return body, Request(body.request_id, body.session_id, prompt, sampling, body.n, body.logprobs or 0)


def in_vocabulary(ids: Sequence[int], vocab_size: int) -> None:
    for id in ids:
        if not 0 <= id < vocab_size:
            raise CallerError(f"Token id {id} is out of vocabulary")


def guide_of(structured: dict[str, JSON]) -> dict[str, JSON] | None:
    for kind, name in GUIDES.items():
        match structured.get(name):
            case None:
                continue
            case str(tag) if kind == "tag":
                return {"kind": kind, "value": msgspec.json.decode(tag)}
            case value:
                return {"kind": kind, "value": None if kind == "object" else value}
    return None


class Answer:
    """The JSON of one call's answer: `chunk` by chunk and the `usage`, or the `whole`."""

    def __init__(self, body: Body, model: str) -> None:
        self._body = body
        self._head = {
            "id": f"cmpl-{body.request_id}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model,
        }
        self._begun: set[int] = set()
        self._tokens = 0

    def chunk(self, raw: Raw) -> bytes:
        first = raw.choice not in self._begun
        self._begun.add(raw.choice)
        return encoded(self._head | {"choices": [self._choice(raw, echo=first)]})

    def usage(self) -> bytes:
        return encoded(self._head | {"choices": [], "usage": self._usage()})

    def whole(self, raws: Sequence[Raw]) -> bytes:
        choices = [
            self._choice(_joined([raw for raw in raws if raw.choice == choice]), echo=True)
            for choice in sorted({raw.choice for raw in raws})
        ]
        return encoded(self._head | {"choices": choices, "usage": self._usage()})

    def _choice(self, raw: Raw, *, echo: bool) -> dict[str, JSON]:
        self._tokens += len(raw.ids)
        return {
            "index": raw.choice,
            "text": raw.text,
            "logprobs": None if self._body.logprobs is None else _logprobs(raw),
            "finish_reason": raw.finish.reason if raw.finish else None,
            "stop_reason": raw.finish.stop if raw.finish else None,
            "prompt_token_ids": self._body.prompt if echo and self._body.return_token_ids else None,
            "token_ids": raw.ids if self._body.return_token_ids else None,
        }

    def _usage(self) -> dict[str, int]:
        prompt = len(self._body.prompt)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": self._tokens,
            "total_tokens": prompt + self._tokens,
        }


def error_body(error: StenographError, status: int) -> bytes:
    kind = "BadRequestError" if status == 400 else "NotFoundError" if status == 404 else "InternalServerError"
    return encoded({"error": {"message": error.message, "type": kind, "param": error.param, "code": status}})


def models_body(model: str, max_model_len: int) -> bytes:
    facts = {"id": model, "object": "model", "created": int(time.time()), "owned_by": "vllm", "root": model}
    return encoded({"object": "list", "data": [facts | {"parent": None, "max_model_len": max_model_len}]})


def _joined(raws: Sequence[Raw]) -> Raw:
    return Raw(
        choice=raws[0].choice,
        ids=[id for raw in raws for id in raw.ids],
        logprobs=[logprob for raw in raws for logprob in raw.logprobs],
        rows=[row for raw in raws for row in raw.rows],
        text="".join(raw.text for raw in raws),
        finish=raws[-1].finish,
    )


def _logprobs(raw: Raw) -> dict[str, JSON]:
    return {
        "token_logprobs": [number(logprob) for logprob in raw.logprobs],
        "tokens": [_name(id) for id in raw.ids],
        "top_logprobs": [_row(row) for row in raw.rows],
    }


def _row(row: Row) -> dict[str, JSON]:
    return {_name(id): number(max(logprob, SENTINEL)) for id, logprob in row.items()}


def _name(id: int) -> str:
    return f"token_id:{id}"


def number(value: JSON) -> JSON:
    """NaN as Python's own `json` writes it, though JSON has none: engines have been seen to."""
    return msgspec.Raw(b"NaN") if isinstance(value, float) and math.isnan(value) else value


def encoded(value: JSON) -> bytes:
    return msgspec.json.encode(value)
