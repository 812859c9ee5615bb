"""A chat template: Jinja as `transformers` runs it, in a sandbox, with a clock that stands still.

The environment has what templates of the field rely on (`loopcontrols`, `{% generation %}`, `raise_exception`,
`strftime_now`, a `tojson` that escapes nothing), so any template that renders there renders here, to the same text.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import jinja2
import jinja2.ext
import jinja2.meta
import jinja2.nodes
import jinja2.parser

from stenograph.core import JSON, Message, ToolCall, Value
from stenograph.errors import ConfigError, TemplateRefused
from stenograph.render.bounds import BoundedEnvironment

HEAD_ROLES = ("system", "developer")


class _Generation(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}` marks what a model wrote; here it only has to be let through."""

    tags = {"generation"}  # noqa: RUF012  (jinja2 declares it as an instance attribute)

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_through"), [], [], body).set_lineno(line)

    def _through(self, caller: Callable[[], str]) -> str:
        return caller()


def _tojson(
    value: JSON,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own escapes `<` and `&`, which no model was trained on."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class _Refusal(jinja2.TemplateError):
    """The template called `raise_exception`."""


def _raise_exception(message: str) -> NoReturn:
    raise _Refusal(message)


def _environment() -> BoundedEnvironment:
    environment = BoundedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    return environment


class Template:
    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        """`special_tokens`: what templates call `bos_token`, `eos_token` and so on."""
        self.source = source
        self._special_tokens = dict(special_tokens)
        self.hash = hashlib.sha256(source.encode()).hexdigest()[:16]
        try:
            self._environment = _environment()
            self._compiled = self._environment.compiled(source)
            self.reads = frozenset(jinja2.meta.find_undeclared_variables(self._environment.parse(source)))
            """The arguments that make a difference to it."""
        except (jinja2.TemplateError, RecursionError) as error:
            raise ConfigError(f"the chat template is not valid Jinja: {error}") from error

    def render(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[JSON],
        arguments: Mapping[str, JSON],
        *,
        generate: bool,
        now: datetime.datetime,
    ) -> str:
        """`generate` adds the opening of an assistant turn. `now` is the session's own time: a date in the prompt
        must not change under a conversation that crosses midnight."""
        variables: dict[str, JSON] = {
            **self._special_tokens,
            "documents": None,
            "strftime_now": now.strftime,
            **arguments,
            "messages": messages,
            "tools": list(tools) or None,
            "add_generation_prompt": generate,
        }
        try:
            return _noncharacters(self._environment.rendered(self._compiled, variables))
        except _Refusal as error:
            raise TemplateRefused(f"the chat template refuses this conversation: {error}", param="messages") from error
        except Exception as error:  # somebody else's program: it may raise anything
            detail = f"{type(error).__name__}: {error}"
            raise TemplateRefused(f"the chat template cannot render this conversation: {detail}") from error


_SPELLED = re.compile(r"(?<!\\)((?:\\\\)*)\\u(fdd[0-9a-f])")


def _noncharacters(text: str) -> str:
    """By them markers are masked, and a template that prints a value as Python does, or as JSON in ASCII, spells them
    out. They have to come out as they went in."""
    return _SPELLED.sub(lambda found: found[1] + chr(int(found[2], 16)), text) if "\\ufdd" in text else text


class Style(Value):
    """How a template wants to be shown a message."""

    reasoning_key: str = "reasoning_content"
    """By what name it asks for reasoning."""
    text_arguments: bool = False
    """It wants arguments as JSON text: an object it would print as Python does."""
    developer: str = "developer"
    """As whom it is shown the developer: `system` where it has no word for one, or refuses him."""
    reply_names: bool = True
    """It minds the name that a caller gives to who replies, as frameworks of several agents do."""
    one_head: bool = False
    """Of instructions of the system's and the developer's at the beginning it would drop some, or refuse them."""
    null_content: bool = False
    """It writes calls only of a reply whose content is null (DeepSeek's R1)."""
    thinking_part: bool = False
    """It looks for reasoning in the content, as a part of its own (Mistral's)."""


def all_seen(messages: Sequence[Message], style: Style) -> list[dict[str, JSON]]:
    """OpenAI's newer name of who instructs is `developer`, and few templates know it: what he says is not lost."""
    seen = [as_template_sees(message, style) for message in messages]
    head = head_length(messages)
    if not style.one_head or all(message.role != "developer" for message in messages[:head]):
        return seen
    content = "\n\n".join(message.content or "" for message in messages[:head])
    return [{**seen[0], "content": content}, *seen[head:]]


def head_length(messages: Sequence[Message]) -> int:
    """How many messages stand before the conversation proper: instructions, which templates look into."""
    return next((place for place, one in enumerate(messages) if one.role not in HEAD_ROLES), len(messages))


def as_template_sees(message: Message, style: Style) -> dict[str, JSON]:
    """The mapping that templates expect. Absent is absent: many ask `is defined`."""
    role = style.developer if message.role == "developer" else message.role
    seen: dict[str, JSON] = {"role": role, "content": _content_seen(message, style)}
    if message.reasoning is not None and not style.thinking_part:
        seen[style.reasoning_key] = message.reasoning
    if message.tool_calls:
        seen["tool_calls"] = [_call_seen(call, style) for call in message.tool_calls]
    if message.tool_call_id is not None:
        seen["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        seen["name"] = message.name
    return seen


def _content_seen(message: Message, style: Style) -> JSON:
    said = message.content or ""
    if style.null_content and message.tool_calls and not said:
        return None
    if style.thinking_part and message.reasoning:
        thought: JSON = {"type": "thinking", "thinking": message.reasoning}
        return [thought, {"type": "text", "text": said}] if said else [thought]
    return said


def _call_seen(call: ToolCall, style: Style) -> dict[str, JSON]:
    arguments = call.arguments
    if style.text_arguments and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
