"""The body of `POST /scored_data` (atroposlib 0.4.0, `ScoredData`), read before it is kept: a mistake is its maker's.

Their API drops what it cannot read, and leaves alone what it does not look at: rows of unequal lengths arrive at the
trainer. Whatever else stands in a group is sent as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from stenograph.core import JSON, Value
from stenograph.errors import CallerError

Group: TypeAlias = Mapping[str, Any]


class ScoredData(Value, kw_only=True):
    """The fields that are looked at. An optional one that is empty is none: so Atropos' own environments write it."""

    tokens: list[list[int]]
    masks: list[list[int]]
    """The token where it is trained, -100 elsewhere."""
    scores: list[float]
    advantages: list[list[float]] | None = None
    ref_logprobs: list[list[float]] | None = None
    inference_logprobs: list[list[float]] | None = None
    distill_token_ids: list[list[list[int]]] | None = None
    distill_logprobs: list[list[list[float]]] | None = None
    messages: list[list[dict[str, JSON]]] | None = None
    overrides: list[dict[str, JSON]] | None = None
    group_overrides: dict[str, JSON] | None = None


PER_SEQUENCE = ("masks", "scores", "advantages", "ref_logprobs", "inference_logprobs", "messages", "overrides")
PER_TOKEN = ("masks", "inference_logprobs")
DISTILLED = ("distill_token_ids", "distill_logprobs")

_GROUP = msgspec.json.Decoder(ScoredData)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


def body(scored: Group | Sequence[Group]) -> msgspec.Raw:
    """Of one group, or of several that are one step. Arrays may be numpy's. An error names the field at fault."""
    if isinstance(scored, Mapping):
        return _checked(scored, "")
    return msgspec.Raw(msgspec.json.encode([_checked(group, f"[{place}].") for place, group in enumerate(scored)]))


def groups(data: msgspec.Raw) -> list[ScoredData]:
    return [_GROUP.decode(group) for group in _parts(data)]


def is_list(data: msgspec.Raw) -> bool:
    return bytes(data)[:1] == b"["


def sent_by(env_id: int, data: msgspec.Raw) -> bytes:
    """The same, with `env_id` in each group."""
    named = [{**_FIELDS.decode(group), "env_id": env_id} for group in _parts(data)]
    return msgspec.json.encode(named if is_list(data) else named[0])


def _parts(data: msgspec.Raw) -> list[msgspec.Raw]:
    return _LIST.decode(data) if is_list(data) else [data]


def _checked(group: Group, where: str) -> msgspec.Raw:
    try:
        encoded = msgspec.json.encode(group, enc_hook=_listed)
        read = _GROUP.decode(encoded)
    except (TypeError, msgspec.ValidationError) as error:
        # What is not finite was written as null, which no field takes.
        raise CallerError(f"{where or 'the group'}: {error}", param=where.rstrip(".") or None) from error
    for field, words in _faults(read):
        raise CallerError(f"{where}{field}: {words}", param=f"{where}{field}")
    return msgspec.Raw(encoded)


def _listed(array: Any) -> Any:
    if hasattr(array, "tolist"):
        return array.tolist()
    raise TypeError(f"{type(array).__name__} is no JSON")


def _faults(group: ScoredData) -> Iterator[tuple[str, str]]:
    if not group.tokens:
        yield "tokens", "there is no sequence in it"
    for field in (*PER_SEQUENCE, *DISTILLED):
        rows = getattr(group, field)
        if rows and len(rows) != len(group.tokens):
            yield field, f"it is of {len(rows)} sequences, and tokens of {len(group.tokens)}"
    if not group.masks or not group.scores:
        yield "masks" if not group.masks else "scores", "it is empty"
    for field in (*PER_TOKEN, *DISTILLED):
        for place, (row, tokens) in enumerate(zip(getattr(group, field) or (), group.tokens, strict=False)):
            if len(row) != len(tokens):
                yield f"{field}[{place}]", f"it has {len(row)} positions, and tokens has {len(tokens)}"
    for place, said in enumerate(group.messages or ()):
        if any("role" not in message or "content" not in message for message in said):
            yield f"messages[{place}]", "each message has a role and a content"
