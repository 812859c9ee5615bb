"""The shortest thing that meets a guide: what the scripted engine says where it is held to one and has no line for it.

It knows as much of JSON Schema, and of xgrammar's structural tags, as there is in this house; a regular expression or a
grammar it can only refuse.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stenograph.core import JSON, Guide
from stenograph.errors import CallerError

Spell = Callable[[int], str]
"""A token by its id."""


def instance(guide: Guide, spell: Spell) -> str:
    match guide.kind:
        case "json":
            return _json(guide.value)
        case "object":
            return "{}"
        case "choice":
            return str(guide.value[0])
        case "tag":
            return _of_format(guide.value["format"], spell)
        case kind:
            raise CallerError(f"the script has no line that meets this {kind}", param="guide")


def _of_format(format: JSON, spell: Spell) -> str:
    match format:
        case {"type": "const_string", "value": str(text)}:
            return text
        case {"type": "token", "token": int(id)}:
            return spell(id)
        case {"type": "json_schema", "json_schema": schema}:
            return _json(schema)
        case {"type": "sequence", "elements": parts}:
            return "".join(_of_format(part, spell) for part in parts)
        case {"type": "or", "elements": parts}:
            return _of_format(parts[0], spell)
        case {"type": "optional" | "star" | "any_text" | "any_tokens"}:
            return ""
        case {"type": "tag", "begin": begin, "content": content, "end": end}:
            return "".join(part if isinstance(part, str) else _of_format(part, spell) for part in (begin, content, end))
        case {"type": "regex", "pattern": pattern}:
            return _MATCHES[pattern]
        case {"type": kind}:
            raise CallerError(f"the script has no line that meets the format {kind}", param="guide")
        case _:
            raise CallerError("a structural tag consists of formats", param="guide")


_MATCHES = {"[ \\n]*": "", "[0-9]+": "0", "[a-zA-Z0-9]{9}": "zzzzzzzzz"}
"""Of the patterns that stand in this house's own tags."""


def _json(schema: JSON) -> str:
    return msgspec.json.encode(_value(schema, schema)).decode()


def _value(schema: JSON, whole: JSON) -> JSON:
    match schema:
        case {"const": value} | {"enum": [value, *_]}:
            return value
        case {"$ref": str(place)}:
            return _value(_referred(place, whole), whole)
        case {"anyOf": [one, *_]} | {"oneOf": [one, *_]} | {"allOf": [one]}:
            return _value(one, whole)
        case {"type": [one, *_]}:
            return _value(schema | {"type": one}, whole)
        case {"type": "array"}:
            return [_value(schema.get("items", {}), whole)] * schema.get("minItems", 0)
        case {"type": "object"} | {"properties": _}:
            properties = schema.get("properties", {})
            return {name: _value(properties.get(name, {}), whole) for name in schema.get("required", ())}
        case {"type": "integer" | "number"}:
            return schema.get("minimum", 0)
        case {"type": "boolean"}:
            return False
        case {"type": "null"}:
            return None
        case _:
            return ""


def _referred(place: str, whole: JSON) -> JSON:
    for step in place.removeprefix("#").strip("/").split("/"):
        whole = whole[step] if step else whole
    return whole
