"""Tools as Responses has them, and as a chat template knows them: functions, all of them.

- A function stands flat here, nested there; nothing of it is reordered or filled in, for templates print it.
- A custom tool takes one text, whatever its form: a function with the one argument `input`. Its grammar, which no
  engine here can hold the model to, is put into words, and noted.
- The functions of a namespace get its name in front, as MCP's tools do: `agents__spawn`.
- What only OpenAI's own servers run (`web_search`), or what has no words for the model (`local_shell`), is left out and
  noted: nobody here could run it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from stenograph.core import JSON, Note, NoteKind, Value
from stenograph.wire import body, extras

JOINT = "__"
INPUT = "input"
"""The one argument of a custom tool."""


class Known(Value):
    """A tool as its caller knows it."""

    name: str
    namespace: str | None = None
    custom: bool = False


class Toolbox(Value):
    functions: tuple[dict[str, JSON], ...] = ()
    """As the template prints them."""
    known: Mapping[str, Known] = msgspec.field(default_factory=dict)
    """By the name that the model calls them."""
    notes: tuple[Note, ...] = ()

    def caller_knows(self, name: str) -> Known:
        """A model may also call what does not exist: its caller will tell it so."""
        return self.known.get(name) or Known(name)

    def only(self, names: Iterable[str]) -> Toolbox:
        chosen = frozenset(names)
        functions = tuple(tool for tool in self.functions if tool["function"]["name"] in chosen)
        return msgspec.structs.replace(self, functions=functions)


class ToolField(Value):
    """The least that a tool is; the rest of it is the template's."""

    type: str


class NamedField(Value):
    name: str
    description: str | None = None


class FormatField(Value):
    type: str = "text"
    syntax: str | None = None
    definition: str | None = None


class CustomField(NamedField):
    format: FormatField = FormatField()


class NamespaceField(NamedField, kw_only=True):
    tools: list[dict[str, JSON]]


def model_name(name: str, namespace: str | None) -> str:
    return name if namespace is None else f"{namespace}{JOINT}{name}"


def toolbox(tools: Sequence[dict[str, JSON]]) -> Toolbox:
    functions: list[dict[str, JSON]] = []
    known: dict[str, Known] = {}
    notes: list[Note] = []
    for tool, at, namespace in _spread(tools):
        kind = body.convert(tool, ToolField, at).type
        if kind not in ("function", "custom"):
            notes.append(extras.ignored(str(tool.get("name", kind)), NoteKind.TOOL_IGNORED))
            continue
        name = body.convert(tool, NamedField, at).name
        called = model_name(name, namespace)
        if called in known:
            raise body.refuse(f"{at}.name", f"there are two tools that the model would know as {called}")
        known[called] = Known(name, namespace, kind == "custom")
        if kind == "custom":
            custom = body.convert(tool, CustomField, at)
            functions.append(_function(_of_custom(custom), called))
            notes += [extras.ignored(f"{at}.format")] if custom.format.type != "text" else []
        else:
            functions.append(_function({key: value for key, value in tool.items() if key != "type"}, called))
    return Toolbox(tuple(functions), known, tuple(notes))


def _spread(tools: Sequence[dict[str, JSON]]) -> Iterator[tuple[dict[str, JSON], str, str | None]]:
    """Each tool with its place in the body, and the namespace that it stands in."""
    for index, tool in enumerate(tools):
        at = f"tools[{index}]"
        if tool.get("type") != "namespace":
            yield tool, at, None
            continue
        space = body.convert(tool, NamespaceField, at)
        for place, inner in enumerate(space.tools):
            yield inner, f"{at}.tools[{place}]", space.name


def _function(function: dict[str, JSON], name: str) -> dict[str, JSON]:
    return {"type": "function", "function": {**function, "name": name}}


def _of_custom(tool: CustomField) -> dict[str, JSON]:
    form = tool.format
    wish = f"Text of this {form.syntax or ''} grammar:\n{form.definition}" if form.definition else "Any text."
    text: JSON = {"type": "string", "description": wish}
    parameters = {"type": "object", "properties": {INPUT: text}, "required": [INPUT]}
    return {"name": tool.name, "description": tool.description or "", "parameters": parameters}
