"""The ways in which callers ask for a reply of a certain form: OpenAI's `response_format`, vLLM's `structured_outputs`.

`strict` false, OpenAI's default for a schema, means that a model may miss it; here it never does, as on vLLM.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from stenograph.core import JSON, Guide, Value
from stenograph.wire import body

RESPONSE_FORMAT, STRUCTURED_OUTPUTS = "response_format", "structured_outputs"


class JsonSchema(Value):
    schema_: dict[str, JSON] | bool = field(name="schema")
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(Value, kw_only=True):
    """`structural_tag` is vLLM's; its older form has `structures` and `triggers` in place of `format`."""

    type: Literal["text", "json_object", "json_schema", "structural_tag"]
    json_schema: JsonSchema | None = None
    format: dict[str, JSON] | None = None
    structures: JSON = None
    triggers: JSON = None


class StructuredOutputs(Value, kw_only=True, forbid_unknown_fields=True):
    """One of them. What vLLM has beside them (how white space is treated) is refused."""

    json: dict[str, JSON] | str | None = None
    """A schema, or its text."""
    json_object: bool | None = None
    regex: str | None = None
    choice: Annotated[list[str], Meta(min_length=1)] | None = None
    grammar: str | None = None
    structural_tag: dict[str, JSON] | str | None = None


def guide(format: ResponseFormat | None, structured: StructuredOutputs | None) -> tuple[Guide | None, str]:
    """And the field that it stands in."""
    by_format = None if format is None else _by_format(format)
    by_structure = None if structured is None else _by_structure(structured)
    if by_format is not None and by_structure is not None:
        raise body.refuse(STRUCTURED_OUTPUTS, f"{RESPONSE_FORMAT} says otherwise; send one of them")
    return (by_structure, STRUCTURED_OUTPUTS) if by_structure is not None else (by_format, RESPONSE_FORMAT)


def _by_format(format: ResponseFormat) -> Guide | None:
    match format.type:
        case "text":
            return None
        case "json_object":
            return Guide("object")
        case "json_schema":
            if format.json_schema is None:
                raise body.refuse(f"{RESPONSE_FORMAT}.json_schema", "it is required")
            return Guide("json", format.json_schema.schema_)
        case "structural_tag":
            parts = {name: getattr(format, name) for name in ("format", "structures", "triggers")}
            return Guide(
                "tag", {"type": format.type} | {name: part for name, part in parts.items() if part is not None}
            )


def _by_structure(structured: StructuredOutputs) -> Guide | None:
    given = {name: value for name in structured.__struct_fields__ if (value := getattr(structured, name))}
    if not given:
        return None
    if len(given) > 1:
        raise body.refuse(STRUCTURED_OUTPUTS, f"one kind of them at a time, not {', '.join(given)}")
    match given.popitem():
        case "json", schema:
            return Guide("json", _decoded(schema, "json"))
        case "json_object", _:
            return Guide("object")
        case "regex", pattern:
            return Guide("regex", pattern)
        case "choice", texts:
            return Guide("choice", texts)
        case "grammar", text:
            return Guide("grammar", text)
        case _, tag:
            return Guide("tag", _decoded(tag, "structural_tag"))


def _decoded(value: JSON, name: str) -> JSON:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value, type=dict[str, JSON])
    except (msgspec.DecodeError, RecursionError) as error:
        raise body.refuse(f"{STRUCTURED_OUTPUTS}.{name}", f"it is no JSON object: {error}") from error
