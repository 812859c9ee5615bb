"""A Responses body to an `Ask`. Chat's choices hold here too (`chat_request.py`); beside them:

- `instructions` are this call's own: the first message, and not what a later call inherits by `previous_response_id`.
- `allowed_tools` leaves the others out of the prompt, for nothing else would keep the model from them; a prompt with
  other tools is another conversation, and forks.
- Whatever would keep state elsewhere (`conversation`, a stored `prompt`) or run in the background is refused.
- `truncation: auto` would drop what does not fit; here a prompt that does not fit is refused, whatever it says, and the
  field is noted. `include` of what only OpenAI's tools have is noted too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, field, json

from stenograph.core import JSON, Ask, Conversation, Guide, Message, Note, Sampling, Value
from stenograph.wire import body, extras, guides, responses_items, responses_names, responses_tools, sampling, thinking
from stenograph.wire.body import Id
from stenograph.wire.chat_request import MAX_TOP_LOGPROBS
from stenograph.wire.responses_items import ItemField
from stenograph.wire.responses_tools import Toolbox

LOGPROBS, SEALED = "message.output_text.logprobs", "reasoning.encrypted_content"
"""What `include` may ask for here."""


class FormatField(Value):
    type: str
    schema: dict[str, JSON] | None = None


class TextField(Value):
    format: FormatField | None = None
    verbosity: JSON = None
    """A wish that no template can grant: noted."""


class ChoiceField(Value):
    """How `tool_choice` names a tool, or several."""

    type: str
    name: str | None = None
    namespace: str | None = None
    mode: Literal["auto", "required"] = "auto"
    tools: list[ChoiceField] = field(default_factory=list)


ToolChoice: TypeAlias = Literal["none", "auto", "required"] | ChoiceField


class ResponsesRequest(sampling.SamplingFields, kw_only=True):
    model: str
    input: str | Annotated[list[ItemField], Meta(min_length=1)]
    instructions: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: sampling.Count | None = None
    tools: list[dict[str, JSON]] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    text: TextField | None = None
    structured_outputs: guides.StructuredOutputs | None = None
    """vLLM's."""
    response_format: JSON = None
    """Chat's name of `text.format`: refused, where it asks for something."""
    reasoning_effort: thinking.Effort | None = None
    reasoning: thinking.ReasoningSwitch | None = None
    thinking: thinking.ThinkingSwitch | bool | None = None
    enable_thinking: bool | None = None
    chat_template_kwargs: dict[str, JSON] | None = None
    include: list[str] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    n: Literal[1] | None = None
    stream: bool | None = None
    return_token_ids: bool | None = None
    session_id: Id | None = None


_REQUEST = json.Decoder(ResponsesRequest)
_SERVED = frozenset(ResponsesRequest.__struct_fields__)


def request(raw: bytes) -> tuple[ResponsesRequest, body.Fields]:
    return body.decode(raw, _REQUEST), body.fields(raw)


def ask(request: ResponsesRequest, fields: body.Fields, toolbox: Toolbox) -> Ask:
    """`toolbox`: all tools of the request."""
    choice = _chosen(request, toolbox)
    own = () if request.instructions is None else (Message("system", request.instructions),)
    read = responses_items.read(request.input, len(own))
    switches = thinking.switches(request)
    given = _given(request)
    guide, guide_field = _guide(request)
    return Ask(
        protocol="responses",
        model=request.model,
        prompt=Conversation((*own, *read.messages), choice.functions, thinking.template_arguments(switches)),
        sampling=Sampling(**given, guide=guide),
        previous=None
        if request.previous_response_id is None
        else responses_names.turn_of(request.previous_response_id),
        instructed=bool(own),
        references=read.references,
        named=read.named,
        given=frozenset(given),
        top_logprobs=request.top_logprobs or 0,
        tool_choice=choice.mode,
        tool=choice.tool,
        single_call=request.parallel_tool_calls is False,
        guide_field=guide_field,
        notes=extras.each_once([*toolbox.notes, *read.notes, *thinking.notes(switches), *_notes(request, fields)]),
        labels=extras.labels(fields),
    )


# ------------------------------------------------------------------------------------------------------------ sampling


def _given(request: ResponsesRequest) -> dict[str, Any]:
    given = sampling.given(request)
    limit = request.max_output_tokens
    if limit is not None and given.setdefault("max_tokens", limit) != limit:
        raise body.refuse("max_output_tokens", f"it is {limit}, but max_tokens is {given['max_tokens']}; send one")
    return given


def _guide(request: ResponsesRequest) -> tuple[Guide | None, str]:
    """And the field that it stands in."""
    if request.response_format not in (None, {"type": "text"}):
        raise body.refuse("response_format", "its place is text.format here", code="unsupported_parameter")
    by_text = None if request.text is None or request.text.format is None else _by_format(request.text.format)
    by_structure, field = guides.guide(None, request.structured_outputs)
    if by_text is not None and by_structure is not None:
        raise body.refuse(field, "text.format says otherwise; send one of them")
    return (by_text, "text.format") if by_structure is None else (by_structure, field)


def _by_format(form: FormatField) -> Guide | None:
    match form.type:
        case "text":
            return None
        case "json_object":
            return Guide("object")
        case "json_schema":
            if form.schema is None:
                raise body.refuse("text.format.schema", "it is required")
            return Guide("json", form.schema)
        case other:
            raise body.refuse("text.format.type", f"{other} is not supported", code="unsupported_parameter")


# --------------------------------------------------------------------------------------------------------------- tools


class Chosen(Value):
    functions: tuple[dict[str, JSON], ...]
    """Those that the model may call."""
    mode: Literal["auto", "none", "required"]
    tool: str | None = None


def _chosen(request: ResponsesRequest, toolbox: Toolbox) -> Chosen:
    choice = request.tool_choice or "auto"
    chosen = Chosen(toolbox.functions, choice) if isinstance(choice, str) else _of_named(choice, toolbox)
    if chosen.mode == "required" and not chosen.functions:
        raise body.refuse("tool_choice", "required, but there are no tools")
    return chosen


def _of_named(choice: ChoiceField, toolbox: Toolbox) -> Chosen:
    if choice.type in ("function", "custom"):
        return Chosen(toolbox.functions, "required", _named(choice, toolbox, "tool_choice"))
    if choice.type != "allowed_tools":
        raise body.refuse("tool_choice.type", f"nobody here can run {choice.type}", code="unsupported_parameter")
    runnable = [
        _named(tool, toolbox, f"tool_choice.tools[{place}]")
        for place, tool in enumerate(choice.tools)
        if tool.type in ("function", "custom")
    ]
    return Chosen(toolbox.only(runnable).functions, choice.mode)


def _named(choice: ChoiceField, toolbox: Toolbox, at: str) -> str:
    name = responses_tools.model_name(choice.name or "", choice.namespace)
    if name not in toolbox.known:
        raise body.refuse(f"{at}.name", f"there is no tool {name} among the tools")
    return name


# --------------------------------------------------------------------------------------------------------------- notes


def _notes(request: ResponsesRequest, fields: body.Fields) -> Iterator[Note]:
    yield from extras.notes(fields, _SERVED)
    if request.text is not None and request.text.verbosity is not None:
        yield extras.ignored("text.verbosity")
    if request.truncation == "auto":
        yield extras.ignored("truncation")
    for name in request.include or ():
        if name not in (LOGPROBS, SEALED):
            yield extras.ignored(f"include.{name}")
