"""A structural tag as a regular expression over coded text: whether it accepts a reply.

An approximation from above, of schemas alone (any flat JSON object meets one); what must be a
control token, and what spelled text, it tells apart exactly. xgrammar itself is asked in `tests/live`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from stenograph.core import JSON, Guide
from stenograph.render.coded import Coding

TokenChar = Callable[[int], str]


def accepts(guide: Guide, coding: Coding, reply: str) -> bool:
    """`reply`: as its tokens spell it, every marker in it being the control token."""
    return re.fullmatch(_pattern(guide.value["format"], _char(coding)), coding.code(reply), re.DOTALL) is not None


def _char(coding: Coding) -> TokenChar:
    def char(id: int) -> str:
        found = coding.char(id)
        assert found is not None
        return re.escape(found)

    return char


def _pattern(format: JSON, char: TokenChar) -> str:
    match format:
        case {"type": "const_string", "value": str(text)}:
            return re.escape(text)
        case {"type": "token", "token": id}:
            return char(id)
        case {"type": "json_schema", "json_schema": schema}:
            return {"object": r"\{[^{}]*\}", "integer": "-?[0-9]+"}[schema["type"]]
        case {"type": "regex", "pattern": str(pattern)}:
            return f"(?:{pattern})"
        case {"type": "any_text"}:
            return _text_without(format.get("excludes", ()))
        case {"type": "any_tokens", "exclude_tokens": ids}:
            return f"[^{''.join(map(char, ids))}]*"
        case {"type": "sequence", "elements": parts}:
            return "".join(_pattern(part, char) for part in parts)
        case {"type": "or", "elements": parts}:
            return f"(?:{'|'.join(_pattern(part, char) for part in parts)})"
        case {"type": "optional", "content": part}:
            return f"(?:{_pattern(part, char)})?"
        case {"type": "star", "content": part}:
            return f"(?:{_pattern(part, char)})*"
        case {"type": "tag", "begin": "", "content": {"type": "any_text"}, "end": str(end)}:
            return _text_without([end]) + re.escape(end)
        case {"type": "tag", "begin": "", "content": content, "end": end}:
            return _pattern(content, char) + _pattern(end, char)
        case other:
            raise AssertionError(other)


def _text_without(excluded: Sequence[str]) -> str:
    return "".join(["(?:", *(f"(?!{re.escape(text)})" for text in excluded), ".)*"])
