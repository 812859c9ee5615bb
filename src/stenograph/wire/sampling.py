"""The sampling parameters as bodies spell them, once for Chat, Completions and a session's `defaults` and `force`.

Ranges are vLLM's, which are OpenAI's where OpenAI has the parameter, but for `temperature`: OpenAI stops at 2, and
nothing but custom does. null is the same as leaving a field out, as both SDKs have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from stenograph.core import JSON, Sampling, Value
from stenograph.wire import body

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
TokenId: TypeAlias = Annotated[int, Meta(ge=0, le=INT32_MAX)]
Penalty: TypeAlias = Annotated[float, Meta(ge=-2, le=2)]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=INT64_MAX)]
StopString: TypeAlias = Annotated[str, Meta(min_length=1)]


class SamplingFields(Value, kw_only=True):
    temperature: Annotated[float, Meta(ge=0)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=INT32_MAX)] | None = None
    """-1 is off, as 0 is."""
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Meta(gt=0)] | None = None
    seed: Annotated[int, Meta(ge=-INT64_MAX - 1, le=INT64_MAX)] | None = None
    """-1 is any seed, which is to say none (vLLM's and llama.cpp's reading)."""
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    """The newer name of `max_tokens`. OpenAI refuses both at once; here they may agree."""
    min_tokens: Annotated[int, Meta(ge=0, le=INT64_MAX)] | None = None
    stop: StopString | list[StopString] | None = None
    stop_token_ids: list[TokenId] | None = None
    ignore_eos: bool | None = None
    logit_bias: dict[TokenId, Annotated[float, Meta(ge=-100, le=100)]] | None = None


class OnlySamplingFields(SamplingFields, kw_only=True, forbid_unknown_fields=True):
    """Where nothing else may stand."""


PARAMETERS = frozenset(Sampling.__struct_fields__)


def given(fields: SamplingFields) -> dict[str, Any]:
    """The parameters that are set, named and typed as those of `core.Sampling`."""
    values: dict[str, Any] = {name: getattr(fields, name) for name in SamplingFields.__struct_fields__}
    values["max_tokens"] = _max_tokens(fields)
    values["seed"] = None if fields.seed == -1 else fields.seed
    if fields.top_k == -1:
        values["top_k"] = 0
    if fields.stop is not None:
        values["stop"] = (fields.stop,) if isinstance(fields.stop, str) else tuple(fields.stop)
    if fields.stop_token_ids is not None:
        values["stop_token_ids"] = tuple(fields.stop_token_ids)
    return {name: value for name, value in values.items() if name in PARAMETERS and value is not None}


def given_by_session(values: Mapping[str, JSON], field: str = "") -> dict[str, Any]:
    """The same for `SessionSampling.defaults` or `.force`, which are kept as JSON. `turn` lays them over an `Ask`:

    defaults where the ask's own `given` has no such name, force over everything.
    """
    return given(body.convert(dict(values), OnlySamplingFields, field))


def _max_tokens(fields: SamplingFields) -> int | None:
    old, new = fields.max_tokens, fields.max_completion_tokens
    if old is not None and new is not None and old != new:
        raise body.refuse("max_tokens", f"it is {old}, but max_completion_tokens is {new}; send one of them")
    limit = old if new is None else new
    if limit is not None and fields.min_tokens is not None and fields.min_tokens > limit:
        raise body.refuse("min_tokens", f"it is {fields.min_tokens}, above the limit of {limit} tokens")
    return limit
