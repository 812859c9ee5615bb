"""vLLM's `/inference/v1/generate` from the other side: what `scripted_wire.py` is for completions.

The shapes were taken down from vLLM 0.32, run with `--enable-scale-out`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from itertools import zip_longest

import msgspec
import numpy as np

from stenograph.core import JSON, Request, Sampling
from stenograph.engine.beside import told_from
from stenograph.engine.evidence import SENTINEL
from stenograph.engine.odds import Row
from stenograph.engine.raw import Raw
from stenograph.engine.scripted_beside import in_npy, routing, support
from stenograph.engine.scripted_wire import MAX_TOKENS, StreamOptions, encoded, guide_of, in_vocabulary, number
from stenograph.errors import CallerError


class Body(msgspec.Struct):
    token_ids: list[int]
    sampling_params: dict[str, JSON] = {}
    model: str | None = None
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    return_token_ids: bool = False
    request_id: str = msgspec.field(default_factory=lambda: uuid.uuid4().hex)


class Parameters(msgspec.Struct):
    """What of `sampling_params` is no `Sampling`."""

    n: int = 1
    logprobs: int | None = None
    routed_experts_prompt_start: int = 0


def parse(raw: bytes, vocab_size: int) -> tuple[Body, Request]:
    try:
        body = msgspec.json.decode(raw, type=Body)
        given = {name: value for name, value in body.sampling_params.items() if value is not None}
        parameters = msgspec.convert(given, Parameters)
        given["guide"] = guide_of(given.get("structured_outputs") or {})
        sampling = msgspec.convert({"max_tokens": MAX_TOKENS} | given, Sampling, str_keys=True)
    except msgspec.DecodeError as error:
        raise CallerError(f"1 validation error: {error}") from error
    in_vocabulary(body.token_ids, vocab_size)
    prompt = np.array(body.token_ids, np.int32)
    start = parameters.routed_experts_prompt_start
    request = Request(body.request_id, "", prompt, sampling, parameters.n, parameters.logprobs or 0)
    return body, msgspec.structs.replace(request, path=start + 1 if start else 0)


class Answer:
    """The JSON of one call's answer. `version`: of the weights, as they are when it is asked."""

    def __init__(self, body: Body, request: Request, version: Callable[[], str], *, beside: bool) -> None:
        """`beside`: tell what else there is to tell (see `Script`)."""
        self._body = body
        self._top = request.top_logprobs
        self._head = {"request_id": f"generate-tokens-{body.request_id}", "output_mode": "tokens"}
        self._version = version
        self._versions: list[list[str]] = [[] for _ in range(request.n)]
        """Of each token so far, choice by choice."""
        self._echoed = False
        self._beside = beside
        self._start = told_from(request)
        self._sampled: list[list[int]] = [[] for _ in range(request.n)]

    def chunk(self, raw: Raw) -> bytes:
        head: dict[str, JSON] = {**self._head, "usage": None}
        if self._body.return_token_ids and not self._echoed:
            head["prompt_token_ids"] = self._body.token_ids
        self._echoed = True
        return encoded(head | {"choices": [self._choice(raw)]})

    def usage(self) -> bytes:
        return encoded(self._head | {"choices": [], "usage": self._usage()})

    def whole(self, raws: Sequence[Raw]) -> bytes:
        choices: dict[int, dict[str, JSON]] = {}
        for raw in raws:
            said = self._choice(raw)
            nothing: dict[str, JSON] = {"token_ids": [], "logprobs": {"content": []}, "sampling_mask": None}
            before = choices.setdefault(raw.choice, said | nothing)
            before["token_ids"] += said["token_ids"]
            before["logprobs"]["content"] += (said["logprobs"] or {"content": []})["content"]
            before["sampling_mask"] = [*(before["sampling_mask"] or ()), *(said["sampling_mask"] or ())] or None
            last = ("finish_reason", "stop_reason", "weight_versions", "routed_experts")
            before |= {name: said[name] for name in last}
        return encoded(self._head | {"choices": list(choices.values()), "usage": self._usage()})

    def _choice(self, raw: Raw) -> dict[str, JSON]:
        own = self._versions[raw.choice] if raw.choice < len(self._versions) else []
        own += [self._version()] * len(raw.ids)
        sampled = self._sampled[raw.choice] if raw.choice < len(self._sampled) else []
        sampled += raw.ids
        return {
            "index": raw.choice,
            "token_ids": raw.ids,
            "logprobs": {"content": self._content(raw)},
            "finish_reason": raw.finish.reason if raw.finish else None,
            "stop_reason": raw.finish.stop if raw.finish else None,
            "weight_versions": _spans(own) if raw.finish else None,
            "sampling_mask": [support(id) for id in raw.ids] if self._beside else None,
            "routed_experts": self._experts(sampled) if self._beside and raw.finish else None,
        }

    def _experts(self, sampled: list[int]) -> str:
        """Of all that was computed: not of the last token, which was sampled and no more."""
        return in_npy(routing([*self._body.token_ids, *sampled][self._start : -1]))

    def _content(self, raw: Raw) -> list[JSON]:
        tokens = zip_longest(raw.ids[: len(raw.logprobs)], raw.logprobs, raw.rows[: len(raw.logprobs)])
        return [
            {"token_id": 0 if id is None else id, "logprob": number(logprob), "top_logprobs": self._row(row or {})}
            for id, logprob, row in tokens
        ]

    def _row(self, row: Row) -> list[JSON]:
        """The sampled token first, whatever its rank, in one of the places that were asked for."""
        entries = [{"token_id": id, "logprob": number(max(value, SENTINEL))} for id, value in row.items()]
        return entries[: max(self._top, 1)]

    def _usage(self) -> dict[str, int]:
        prompt, sampled = len(self._body.token_ids), sum(map(len, self._versions))
        return {"prompt_tokens": prompt, "completion_tokens": sampled, "total_tokens": prompt + sampled}


def _spans(versions: Sequence[str]) -> list[JSON]:
    starts = [place for place, version in enumerate(versions) if place == 0 or versions[place - 1] != version]
    return [
        {"version": versions[start], "start": start, "end": end}
        for start, end in zip(starts, [*starts[1:], len(versions)], strict=True)
    ]
