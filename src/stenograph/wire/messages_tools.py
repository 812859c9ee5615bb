"""Tools in Anthropic's form, to the one that templates expect.

A tool of a `type` of Anthropic's own (`web_search_…`, `bash_…`, `computer_…`) has no schema in the body: a model that
was not trained on it could not call it, and the server side ones nobody here could run. They are left out and noted.

A tool that is marked `defer_loading` is not in the prompt until the agent's own search has found it: a `tool_reference`
in a result then stands for its definition, and is written out there, so that the prompt only grows. Where the search is
Anthropic's own, nobody here could search: the tools are in the prompt from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from stenograph.core import JSON, Note, NoteKind, Value
from stenograph.wire import body, extras

CUSTOM = (None, "custom")
SEARCH = "tool_search_tool"
"""How the types of Anthropic's own searches begin."""


class ToolField(Value, kw_only=True):
    name: str | None = None
    type: str | None = None
    description: str | None = None
    input_schema: dict[str, JSON] | None = None
    defer_loading: bool | None = None
    strict: JSON = None
    input_examples: JSON = None
    allowed_callers: JSON = None


class ToolChoice(Value, kw_only=True):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    """With `tool`."""
    disable_parallel_tool_use: bool | None = None


UNSEEN = ("allowed_callers", "input_examples", "strict")
"""Of a tool of one's own: what the template cannot show, or nobody here does."""


class Tools(Value):
    shown: tuple[dict[str, JSON], ...]
    deferred: Mapping[str, str]
    """By name, their definitions, as JSON."""


def tools(given: Sequence[ToolField]) -> Tools:
    ours = [(tool, _function(tool, f"tools[{at}]")) for at, tool in enumerate(given) if tool.type in CUSTOM]
    searched = not any(tool.type is not None and tool.type.startswith(SEARCH) for tool in given)
    deferred = {
        str(tool.name): msgspec.json.encode(function["function"]).decode()
        for tool, function in ours
        if searched and tool.defer_loading
    }
    return Tools(tuple(function for tool, function in ours if tool.name not in deferred), deferred)


def notes(given: Sequence[ToolField]) -> Iterator[Note]:
    for tool in given:
        if tool.type not in CUSTOM:
            yield extras.ignored(tool.name or str(tool.type), NoteKind.TOOL_IGNORED)
            continue
        for name in UNSEEN:
            if getattr(tool, name):
                yield extras.ignored(f"tools.{name}")


def _function(tool: ToolField, at: str) -> dict[str, JSON]:
    if tool.name is None:
        raise body.refuse(f"{at}.name", "it is required")
    if tool.input_schema is None:
        raise body.refuse(f"{at}.input_schema", "it is required")
    described = {} if tool.description is None else {"description": tool.description}
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": tool.input_schema}}
