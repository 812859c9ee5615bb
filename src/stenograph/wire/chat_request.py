"""A chat body to an `Ask`: OpenAI's request with vLLM's extensions.

What is chosen where CONTRACT 4 leaves it open:

- `tool_choice` none: the tools stay in the prompt and calls are not parsed, which is vLLM's default
  (`--exclude-tools-when-tool-choice-none` is off there); a prompt that lost its tools would fork the conversation.
  `required` and a named tool are held to the family's own calls by the engine's guided decoding, or refused.
- `parallel_tool_calls` false holds the reply to one call, or is refused. vLLM hides the second call from the caller, so
  the agent would act on something else than what was sampled.
- `tools: []` is no tools. (OpenAI refuses it; agents build the list by filtering, and send it.)
- A trailing assistant message is a prefill. So vLLM's `continue_final_message` true, with `add_generation_prompt`
  false, is what happens anyway; false beside a trailing assistant message cannot be had, and is refused.
- `top_logprobs` without `logprobs`, and `stream_options` without `stream`, are refused, as by both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, json

from stenograph.core import JSON, Ask, Conversation, Note, NoteKind, Sampling, Value
from stenograph.wire import body, chat_messages, extras, guides, sampling, stream_options, thinking
from stenograph.wire.body import Id
from stenograph.wire.stream_options import StreamOptions

MAX_CHOICES, MAX_TOP_LOGPROBS = 128, 20
"""OpenAI's bounds; the second is also what vLLM serves unless told otherwise."""


class NamedFunction(Value):
    name: str


class NamedTool(Value):
    """How `tool_choice` names a tool, and the least that a tool of ours is."""

    function: NamedFunction
    type: str = "function"


ToolChoice: TypeAlias = Literal["none", "auto", "required"] | NamedTool


class ChatRequest(sampling.SamplingFields, kw_only=True):
    model: str
    messages: Annotated[list[chat_messages.MessageField], Meta(min_length=1)]
    tools: list[dict[str, JSON]] | None = None
    """As they are sent: templates print them, so nothing is reordered or filled in."""
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: guides.ResponseFormat | None = None
    structured_outputs: guides.StructuredOutputs | None = None
    """vLLM's."""
    reasoning_effort: thinking.Effort | None = None
    reasoning: thinking.ReasoningSwitch | None = None
    thinking: thinking.ThinkingSwitch | bool | None = None
    enable_thinking: bool | None = None
    """As Qwen's hosted service takes it."""
    chat_template_kwargs: dict[str, JSON] | None = None
    n: Annotated[int, Meta(ge=1, le=MAX_CHOICES)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    return_token_ids: bool | None = None
    return_tokens_as_token_ids: bool | None = None
    """vLLM's: `token` in logprobs is `token_id:17`."""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    session_id: Id | None = None


_REQUEST = json.Decoder(ChatRequest)
_SERVED = frozenset(ChatRequest.__struct_fields__)


def request(raw: bytes) -> tuple[ChatRequest, body.Fields]:
    return body.decode(raw, _REQUEST), body.fields(raw)


def ask(request: ChatRequest, fields: body.Fields) -> Ask:
    _refuse_what_cannot_be(request)
    prompt, (tools, tool_notes) = conversation(request), _tools(request)
    choice, tool = _tool_choice(request, [tool["function"]["name"] for tool in tools])
    guide, guide_field = guides.guide(request.response_format, request.structured_outputs)
    given = sampling.given(request)
    return Ask(
        protocol="chat",
        model=request.model,
        prompt=prompt,
        sampling=Sampling(**given, guide=guide),
        given=frozenset(given),
        n=request.n or 1,
        top_logprobs=request.top_logprobs or 0,
        tool_choice=choice,
        tool=tool,
        single_call=request.parallel_tool_calls is False,
        guide_field=guide_field,
        notes=extras.each_once([*tool_notes, *thinking.notes(thinking.switches(request)), *_notes(request, fields)]),
        labels=extras.labels(fields),
    )


def conversation(request: ChatRequest) -> Conversation:
    """As much of a body as a prompt is made of."""
    _check_continuation(request)
    tools, _ = _tools(request)
    arguments = thinking.template_arguments(thinking.switches(request))
    return Conversation(chat_messages.messages(request.messages), tools, arguments)


def _refuse_what_cannot_be(request: ChatRequest) -> None:
    if request.top_logprobs and not request.logprobs:
        raise body.refuse("top_logprobs", "it needs logprobs to be true")
    stream_options.check(request.stream_options, request.stream)


def _check_continuation(request: ChatRequest) -> None:
    prefilled = request.messages[-1].role == "assistant"
    if request.continue_final_message and not prefilled:
        raise body.refuse("continue_final_message", "the last message is not an assistant's")
    if request.continue_final_message is False and prefilled:
        raise body.refuse("continue_final_message", "a trailing assistant message is continued here, always")
    if request.add_generation_prompt is not None and request.add_generation_prompt == prefilled:
        raise body.refuse("add_generation_prompt", "it is false for a trailing assistant message, and true otherwise")


def _tools(request: ChatRequest) -> tuple[tuple[dict[str, JSON], ...], list[Note]]:
    """Those that an agent can be asked to call, and a note for each that only somebody else's server could run."""
    tools, notes = [], []
    for index, tool in enumerate(request.tools or ()):
        kind = tool.get("type", "function")
        if isinstance(kind, str) and kind != "function":
            notes.append(extras.ignored(str(tool.get("name", kind)), NoteKind.TOOL_IGNORED))
            continue
        body.convert(tool, NamedTool, f"tools[{index}]")
        tools.append(tool if "type" in tool else {"type": "function", **tool})
    return tuple(tools), notes


def _tool_choice(request: ChatRequest, tools: list[str]) -> tuple[Literal["auto", "none", "required"], str | None]:
    """And which tool, where one is named."""
    match request.tool_choice:
        case None:
            return "auto", None
        case NamedTool(function):
            if function.name not in tools:
                raise body.refuse("tool_choice.function.name", f"there is no tool {function.name} among the tools")
            return "required", function.name
        case "required" if not tools:
            raise body.refuse("tool_choice", "required, but there are no tools")
        case choice:
            return choice, None


def _notes(request: ChatRequest, fields: body.Fields) -> Iterator[Note]:
    yield from extras.notes(fields, _SERVED)
    yield from chat_messages.notes(request.messages)
    yield from stream_options.notes(request.stream_options)
