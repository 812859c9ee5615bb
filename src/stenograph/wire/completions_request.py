"""A Completions body to an `Ask`: OpenAI's request with vLLM's extensions.

What is chosen where CONTRACT 4 leaves it open:

- `max_tokens` left out is all that fits, as on every route here; OpenAI and vLLM mean 16 by it.
- `best_of` equal to `n` asks for nothing, and is taken; above it answers would be sampled that nobody is shown.
- `echo` puts the prompt's text before each answer. With `logprobs` it would want those of the prompt, which no engine
  is asked for here; with `max_tokens` 0 there would be no turn to record. Both are refused.
- `suffix` is refused: the models that can fill in do it by markers of their own, which a prompt can hold.
- A prompt with nothing in it is refused, as on vLLM.
- `add_special_tokens` false is refused: who minds what begins a prompt sends ids.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta, json

from stenograph.core import Ask, Sampling, Text, Tokens
from stenograph.errors import CallerError
from stenograph.wire import body, extras, guides, sampling, stream_options
from stenograph.wire.body import Id
from stenograph.wire.chat_request import MAX_CHOICES, MAX_TOP_LOGPROBS
from stenograph.wire.sampling import TokenId
from stenograph.wire.stream_options import StreamOptions


class CompletionsRequest(sampling.SamplingFields, kw_only=True):
    model: str
    prompt: str | list[TokenId | str | list[TokenId]]
    """A text, ids, or a list that holds one prompt of either kind."""
    n: Annotated[int, Meta(ge=1, le=MAX_CHOICES)] | None = None
    best_of: int | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    """How many alternatives; 0 is the sampled tokens' own."""
    suffix: str | None = None
    response_format: guides.ResponseFormat | None = None
    structured_outputs: guides.StructuredOutputs | None = None
    add_special_tokens: bool | None = None
    return_token_ids: bool | None = None
    return_tokens_as_token_ids: bool | None = None
    """vLLM's: a token in logprobs is written `token_id:17`."""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    session_id: Id | None = None


_REQUEST = json.Decoder(CompletionsRequest)
_SERVED = frozenset(CompletionsRequest.__struct_fields__)


def request(raw: bytes) -> tuple[CompletionsRequest, body.Fields]:
    return body.decode(raw, _REQUEST), body.fields(raw)


def ask(request: CompletionsRequest, fields: body.Fields) -> Ask:
    _refuse_what_cannot_be(request)
    given = sampling.given(request)
    guide, guide_field = guides.guide(request.response_format, request.structured_outputs)
    return Ask(
        protocol="completions",
        model=request.model,
        prompt=prompt(request),
        sampling=Sampling(**given, guide=guide),
        guide_field=guide_field,
        given=frozenset(given),
        n=request.n or 1,
        top_logprobs=request.logprobs or 0,
        notes=extras.each_once([*extras.notes(fields, _SERVED), *stream_options.notes(request.stream_options)]),
        labels=extras.labels(fields),
    )


def prompt(request: CompletionsRequest) -> Text | Tokens:
    given = request.prompt
    if isinstance(given, str):
        return _prompt(given, "prompt")
    if ids := [one for one in given if isinstance(one, int)]:
        if len(ids) != len(given):
            raise body.refuse("prompt", "a list holds ids, or texts, or lists of ids")
        return _prompt(ids, "prompt")
    if len(given) != 1:
        raise body.refuse("prompt", f"one prompt a call, got {len(given)}", code="unsupported_parameter")
    return _prompt(given[0], "prompt[0]")


def _prompt(given: int | str | list[int], at: str) -> Text | Tokens:
    if not given:
        raise body.refuse(at, "there is nothing in it")
    return Text(given) if isinstance(given, str) else Tokens(np.array(given, np.int32))


def _refuse_what_cannot_be(request: CompletionsRequest) -> None:
    stream_options.check(request.stream_options, request.stream)
    if request.suffix:
        raise _unsupported("suffix", "a prompt that is to be filled in has to hold the model's own markers for it")
    if request.best_of is not None and request.best_of != (request.n or 1):
        raise _unsupported("best_of", "it is as many as n, or left out: every answer that is sampled is given")
    if request.echo and request.logprobs is not None:
        raise _unsupported("logprobs", "with echo it asks for those of the prompt, which are not served")
    if request.add_special_tokens is False:
        raise _unsupported("add_special_tokens", "send ids to say what the prompt begins with")


def _unsupported(field: str, why: str) -> CallerError:
    return body.refuse(field, why, code="unsupported_parameter")
