"""A body of `/inference/v1/generate` to an `Ask`: vLLM's request.

What is chosen where CONTRACT 4 leaves it open:

- `sampling_params` are vLLM's `SamplingParams`. Those that shape text alone (`detokenize`, `skip_special_tokens`, …)
  are honoured by an answer that has none.
- `logprobs` k is the sampled token and the k - 1 best others, as vLLM counts here (not so in Completions): up to 1, an
  engine need not be asked for alternatives.
- `output_mode` text is refused: `/v1/completions` takes ids and answers with text.
- `features` and `content_parts` are images and sounds, and refused.
- `model` may be left out: it is the one that is served.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, json

from stenograph.core import JSON, Ask, Sampling, Tokens, Value
from stenograph.wire import body, extras, guides, sampling, stream_options
from stenograph.wire.body import Id
from stenograph.wire.chat_request import MAX_CHOICES, MAX_TOP_LOGPROBS
from stenograph.wire.sampling import TokenId
from stenograph.wire.stream_options import StreamOptions

OF_TEXT = frozenset(
    {"detokenize", "include_stop_str_in_output", "skip_special_tokens", "spaces_between_special_tokens"}
)
"""Sampling parameters of vLLM's that change text at most."""


class GenerateSampling(sampling.SamplingFields, kw_only=True):
    n: Annotated[int, Meta(ge=1, le=MAX_CHOICES)] | None = None
    logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    structured_outputs: guides.StructuredOutputs | None = None


class GenerateRequest(Value, kw_only=True):
    token_ids: Annotated[list[TokenId], Meta(min_length=1)]
    sampling_params: GenerateSampling = GenerateSampling()
    model: str = ""
    request_id: str | None = None
    """The caller's own name for the call: the answer has it."""
    return_token_ids: bool | None = None
    output_mode: Literal["tokens", "text"] = "tokens"
    features: JSON = None
    content_parts: JSON = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    session_id: Id | None = None


_REQUEST = json.Decoder(GenerateRequest)
_SERVED = frozenset(GenerateRequest.__struct_fields__)
_SERVED_SAMPLING = frozenset(GenerateSampling.__struct_fields__) | OF_TEXT


def request(raw: bytes) -> tuple[GenerateRequest, body.Fields]:
    return body.decode(raw, _REQUEST), body.fields(raw)


def ask(request: GenerateRequest, fields: body.Fields) -> Ask:
    _refuse_what_cannot_be(request)
    asked = request.sampling_params
    given = sampling.given(asked)
    guide, guide_field = guides.guide(None, asked.structured_outputs)
    of_sampling = body.fields(bytes(fields["sampling_params"])) if "sampling_params" in fields else {}
    return Ask(
        protocol="generate",
        model=request.model,
        prompt=Tokens(np.array(request.token_ids, np.int32)),
        sampling=Sampling(**given, guide=guide),
        guide_field=f"sampling_params.{guide_field}" if guide else guide_field,
        given=frozenset(given),
        n=asked.n or 1,
        top_logprobs=asked.logprobs if asked.logprobs is not None and asked.logprobs > 1 else 0,
        notes=extras.each_once(
            [
                *extras.notes(fields, _SERVED),
                *extras.notes(of_sampling, _SERVED_SAMPLING, "sampling_params."),
                *stream_options.notes(request.stream_options),
            ]
        ),
        labels=extras.labels(fields),
    )


def _refuse_what_cannot_be(request: GenerateRequest) -> None:
    stream_options.check(request.stream_options, request.stream)
    for name in ("features", "content_parts"):
        if getattr(request, name):
            raise body.refuse(name, "images and audio are not supported yet", code="unsupported_parameter")
    if request.output_mode != "tokens":
        raise body.refuse("output_mode", "text is answered by /v1/completions", code="unsupported_parameter")
