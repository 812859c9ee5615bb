"""A Messages body to an `Ask`: Anthropic's request, and the sampling parameters that engines have beside it.

What is chosen where CONTRACT 4 leaves it open:

- `max_tokens` may be left out: the answer then ends where context or budget do.
- Thinking is shown wherever the model thinks, asked for or not, as by vLLM. `thinking` of type `disabled` shows none of
  it, and switches it off where the template has a switch. `display: omitted` shows a block without text.
- `is_error` of a result has no place in a template: the result's own text has to say it. It is noted.
- `context_management`, `mcp_servers` and the like are things that Anthropic's servers do: left out, and noted.
- `thread`, a conversation that the server keeps, is refused in the words on which the SDK sends all of it instead.
- Claude Code's billing header, a block of its system prompt, is not meant for the model: left out, and noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, json

from stenograph.core import JSON, Ask, Conversation, Guide, Note, Sampling, Value
from stenograph.wire import body, extras, guides, messages_history, messages_tools, sampling, thinking
from stenograph.wire.body import Id

DISPLAYS = (None, "summarized", "omitted")
"""Documented ones. Agents send newer ones (Claude Code `updates`), and would have to try again without."""


class ThinkingField(thinking.ThinkingSwitch):
    display: str | None = None
    """`omitted` shows a block without text; any other way to show it is shown, as it was thought."""


class OutputFormat(Value):
    type: Literal["json_schema"]
    schema: dict[str, JSON]


class OutputConfig(Value):
    effort: thinking.Effort | None = None
    format: OutputFormat | None = None


class MessagesRequest(sampling.SamplingFields, kw_only=True):
    model: str
    messages: Annotated[list[messages_history.MessageField], Meta(min_length=1)]
    system: messages_history.Blocks | None = None
    tools: list[messages_tools.ToolField] | None = None
    tool_choice: messages_tools.ToolChoice | None = None
    stop_sequences: list[sampling.StopString] | None = None
    thinking: ThinkingField | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None
    """The older place of `output_config.format`."""
    response_format: JSON = None
    """OpenAI's: refused, because it would change what is sampled."""
    n: Annotated[int, Meta(ge=1, le=1)] | None = None
    """Messages has one answer a call."""
    stream: bool | None = None
    thread: JSON = None
    cache_control: JSON = None
    chat_template_kwargs: dict[str, JSON] | None = None
    session_id: Id | None = None


_REQUEST = json.Decoder(MessagesRequest)
_SERVED = frozenset(MessagesRequest.__struct_fields__)


def request(raw: bytes) -> tuple[MessagesRequest, body.Fields]:
    return body.decode(raw, _REQUEST), body.fields(raw)


def ask(request: MessagesRequest, fields: body.Fields) -> Ask:
    if request.thread is not None:
        raise body.refuse("thread", "send the whole conversation, without it", code="thread_unsupported_request")
    prompt, given = conversation(request), _given(request)
    guide, guide_field = _guide(request)
    choice, tool = _tool_choice(request, [tool["function"]["name"] for tool in prompt.tools])
    return Ask(
        protocol="messages",
        model=request.model,
        prompt=prompt,
        named=messages_history.named(request.messages),
        sampling=Sampling(**given, guide=guide),
        given=frozenset(given),
        tool_choice=choice,
        tool=tool,
        single_call=_single_call(request.tool_choice),
        guide_field=guide_field,
        notes=extras.each_once(_notes(request, fields)),
        labels=extras.labels(fields),
    )


def conversation(request: MessagesRequest) -> Conversation:
    """As much of a body as a prompt is made of."""
    tools = messages_tools.tools(request.tools or ())
    return Conversation(
        messages_history.messages(request.messages, request.system, tools.deferred),
        tools.shown,
        thinking.template_arguments(_switches(request)),
    )


def _switches(request: MessagesRequest) -> thinking.Switches:
    return thinking.Switches(
        thinking=request.thinking,
        reasoning_effort=request.output_config.effort if request.output_config is not None else None,
        chat_template_kwargs=request.chat_template_kwargs,
    )


def _given(request: MessagesRequest) -> dict[str, Any]:
    given = sampling.given(request)
    if request.stop_sequences:
        if request.stop is not None:
            raise body.refuse("stop", "stop_sequences are there already; send one of them")
        given["stop"] = tuple(request.stop_sequences)
    return given


def _guide(request: MessagesRequest) -> tuple[Guide | None, str]:
    """And the field that it stands in."""
    if request.response_format is not None:
        raise body.refuse("response_format", "Messages has output_config.format for it", code="unsupported_parameter")
    if request.output_config is not None and request.output_config.format is not None:
        return Guide("json", request.output_config.format.schema), "output_config.format"
    if request.output_format is not None:
        return Guide("json", request.output_format.schema), "output_format"
    return None, guides.RESPONSE_FORMAT


def _tool_choice(request: MessagesRequest, tools: list[str]) -> tuple[Literal["auto", "none", "required"], str | None]:
    """And which tool it names."""
    choice = request.tool_choice
    if choice is None or choice.type in ("auto", "none"):
        return "none" if choice is not None and choice.type == "none" else "auto", None
    if not tools:
        raise body.refuse("tool_choice", f"{choice.type}, but there are no tools")
    if choice.type == "tool" and choice.name not in tools:
        raise body.refuse("tool_choice.name", f"there is no tool {choice.name} among the tools")
    return "required", choice.name if choice.type == "tool" else None


def _single_call(choice: messages_tools.ToolChoice | None) -> bool:
    return choice is not None and bool(choice.disable_parallel_tool_use)


def _notes(request: MessagesRequest, fields: body.Fields) -> Iterator[Note]:
    yield from messages_tools.notes(request.tools or ())
    if request.thinking is not None and request.thinking.display not in DISPLAYS:
        yield extras.ignored("thinking.display")
    yield from thinking.notes(_switches(request))
    yield from extras.notes(fields, _SERVED)
    yield from messages_history.notes(request.messages, request.system)
