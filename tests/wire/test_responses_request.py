"""What a Responses body may say, and what it is told where it may not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stenograph.core import Ask, Conversation, Guide, Message, Note, NoteKind, ToolCall
from stenograph.errors import CallerError
from stenograph.wire import responses
from stenograph.wire.codec import Decoded
from stenograph.wire.responses_seal import seal, unsealed
from tests.wire.answers import opened

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "name": "f"}
CUSTOM = {"type": "custom", "name": "patch"}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "done"}


def decode(**fields: Any) -> Decoded:
    return responses.decode(json.dumps({"model": "policy", "input": "hi", **fields}).encode(), lambda id: b"")


def ask(**fields: Any) -> Ask:
    return decode(**fields).ask


def conversation(**fields: Any) -> Conversation:
    prompt = ask(**fields).prompt
    assert isinstance(prompt, Conversation)
    return prompt


def read(*items: Any) -> tuple[Message, ...]:
    return conversation(input=list(items)).messages


def part(type: str, text: Any = "a") -> dict[str, Any]:
    return {"type": type, "text": text}


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"model": None}, "model", "expected string, got null"),
    ({"input": None}, "input", "expected string or array, got null"),
    ({"input": []}, "input", "length >= 1"),
    ({"input": ["hi"]}, "input[0]", "expected object"),
    ({"input": [{"role": "usr", "content": "x"}]}, "input[0].role", "no such choice as 'usr'"),
    ({"input": [{"type": "message", "content": "x"}]}, "input[0].role", "required"),
    ({"input": [{"role": "user"}]}, "input[0].content", "expected array, got null"),
    ({"input": [USER, {"role": "user", "content": [part("input_image")]}]}, "input[1].content[0].type", "no images"),
    ({"input": [{"role": "user", "content": [part("input_file")]}]}, "input[0].content[0].type", "not supported yet"),
    ({"input": [{"role": "user", "content": [part("input_audio")]}]}, "input[0].content[0].type", "audio"),
    ({"input": [{"role": "user", "content": [part("input_text", 3)]}]}, "input[0].content[0].text", "string"),
    ({"input": [{**RESULT, "output": [part("input_image")]}]}, "input[0].output[0].type", "no images"),
    ({"input": [{**RESULT, "output": None}]}, "input[0].output", "expected array, got null"),
    ({"input": [{**RESULT, "call_id": None}]}, "input[0].call_id", "required"),
    ({"input": [{**CALL, "call_id": None}]}, "input[0].call_id", "required"),
    ({"input": [{**CALL, "name": None}]}, "input[0].name", "required"),
    ({"input": [{**CALL, "type": "custom_tool_call"}]}, "input[0].input", "expected string, got null"),
    ({"input": [{"type": "reasoning", "content": [{}]}]}, "input[0].content[0].text", "required"),
    ({"input": [{"type": "item_reference", "id": "msg_0123456789"}]}, "input[0].id", "no item msg_0123456789"),
    ({"input": [{"type": "item_reference"}]}, "input[0].id", "no item"),
    ({"input": [{"type": "web_search_call", "id": "x"}]}, "input[0].type", "web_search_call are not supported"),
    ({"input": [{"type": "local_shell_call", "id": "x"}]}, "input[0].type", "local_shell_call are not supported"),
    ({"input": [{"type": "computer_call_output", "output": {}}]}, "input[0].type", "computer_call_output are not"),
    ({"tools": [{"name": "f"}]}, "tools[0].type", "required"),
    ({"tools": [{"type": "function"}]}, "tools[0].name", "required"),
    ({"tools": [TOOL, TOOL]}, "tools[1].name", "two tools"),
    ({"tools": [{"type": "namespace", "name": "a"}]}, "tools[0].tools", "required"),
    ({"tools": [{"type": "namespace", "name": "a", "tools": [{"type": "custom"}]}]}, "tools[0].tools[0].name", "requi"),
    ({"tool_choice": "required"}, "tool_choice", "there are no tools"),
    ({"tools": [TOOL], "tool_choice": "any"}, "tool_choice", "no such choice as 'any'"),
    ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "g"}}, "tool_choice.name", "no tool g"),
    ({"tools": [TOOL], "tool_choice": {"type": "web_search"}}, "tool_choice.type", "nobody here can run web_search"),
    (
        {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "g"}]}},
        "tool_choice.tools[0].name",
        "no tool g",
    ),
    (
        {"text": {"format": {"type": "json_object"}}, "structured_outputs": {"regex": "a"}},
        "structured_outputs",
        "text.format says otherwise",
    ),
    ({"response_format": {"type": "json_object"}}, "response_format", "text.format here"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema", "required"),
    ({"text": {"format": {"type": "grammar"}}}, "text.format.type", "not supported"),
    ({"max_output_tokens": 0}, "max_output_tokens", ">= 1"),
    ({"max_output_tokens": 3, "max_tokens": 4}, "max_output_tokens", "max_tokens is 4"),
    ({"top_logprobs": 21}, "top_logprobs", "<= 20"),
    ({"truncation": "middle"}, "truncation", "no such choice"),
    ({"reasoning": {"effort": "huge"}}, "reasoning.effort", "no such choice"),
    ({"temperature": -1}, "temperature", ">= 0"),
    ({"n": 2}, "n", "no such choice"),
    ({"background": True}, "background", "not supported here"),
    ({"conversation": "conv_1"}, "conversation", "not supported here"),
    ({"prompt": {"id": "pmpt_1"}}, "prompt", "not supported here"),
    ({"stream": "yes"}, "stream", "boolean"),
    ({"session_id": "a b"}, "session_id", "characters"),
]


@pytest.mark.parametrize(("fields", "param", "words"), WRONG, ids=[str(case[0])[:60] for case in WRONG])
def test_what_cannot_be_names_its_field(fields: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(CallerError) as caught:
        decode(**fields)
    assert caught.value.param == param
    assert words in caught.value.message


def test_an_input_may_be_a_text() -> None:
    assert conversation(input="hi", instructions="Be brief.").messages == (
        Message("system", "Be brief."),
        Message("user", "hi"),
    )
    assert ask(instructions="Be brief.").instructed
    assert not ask().instructed


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"role": "user", "content": [part("input_text"), part("input_text", "b")]}, Message("user", "a\nb")),
        ({"type": "message", "role": "developer", "content": "x"}, Message("developer", "x")),
        ({"role": "assistant", "content": [part("output_text"), part("output_text", "b")]}, Message("assistant", "ab")),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, Message("assistant", "no")),
        ({**CALL, "arguments": {"a": 1}}, Message("assistant", tool_calls=(ToolCall("c", "f", {"a": 1}),))),
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"},
            Message("assistant", tool_calls=(ToolCall("c", "patch", {"input": "x"}),)),
        ),
        ({**RESULT, "output": [part("input_text"), "b"]}, Message("tool", "a\nb", tool_call_id="c")),
        ({**RESULT, "type": "custom_tool_call_output"}, Message("tool", "done", tool_call_id="c")),
    ],
)
def test_items_are_messages(item: dict[str, Any], message: Message) -> None:
    assert read(item) == (message,)


THOUGHT = part("reasoning_text", "hm")


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"content": [THOUGHT]}, "hm"),
        ({"content": [THOUGHT], "encrypted_content": seal("other"), "summary": [part("summary_text", "s")]}, "hm"),
        ({"content": None, "encrypted_content": seal("hm"), "summary": [part("summary_text", "s")]}, "hm"),
        ({"encrypted_content": "gAAAA", "summary": [part("summary_text", "s"), part("summary_text", "t")]}, "s\n\nt"),
        ({"summary": []}, None),
    ],
)
def test_reasoning_is_what_is_nearest_to_it(fields: dict[str, Any], reasoning: str | None) -> None:
    assert read({"type": "reasoning", "id": "rs_1", **fields})[0].reasoning == reasoning


def test_somebody_elses_cipher_is_noted() -> None:
    thought = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
    assert ask(input=[thought, USER]).notes == (Note(NoteKind.FIELD_IGNORED, "input.encrypted_content"),)


def test_a_seal_that_is_broken_is_none() -> None:
    sealed = seal("naïve 🙂")
    assert unsealed(sealed) == "naïve 🙂"
    damaged = [sealed[:-1], sealed[:-5] + "AAAA=", sealed + "x", sealed.replace("stenograph1", "stenograph2"), "é"]
    assert [unsealed(each) for each in damaged] == [None] * 5


def test_replies_without_ids_end_where_another_must_begin() -> None:
    said = {"role": "assistant", "content": "a"}
    thought = {"type": "reasoning", "content": [THOUGHT]}
    assert len(read(thought, said, CALL, {**CALL, "call_id": "d"})) == 1
    assert len(read(said, said)) == 2
    assert len(read(CALL, thought)) == 2
    assert len(read(CALL, RESULT, CALL, RESULT)) == 4


def test_ids_tell_two_replies_apart() -> None:
    first, second = ({**CALL, "id": f"fc_{turn}.0_0", "call_id": turn} for turn in ("7f", "80"))
    assert len(read(first, second)) == 2
    assert ask(input=[first, second]).named == {"7f.0", "80.0"}
    assert ask(input=[{**CALL, "id": "fc_68af0123"}]).named == frozenset()


def test_the_turn_before_goes_by_both_its_names() -> None:
    assert ask(previous_response_id="resp_7f.0").previous == ask(previous_response_id="7f.0").previous == "7f.0"


def test_a_namespaces_functions_have_its_name_in_front() -> None:
    tools = [{"type": "namespace", "name": "agents", "description": "", "tools": [TOOL, CUSTOM]}]
    names = [tool["function"]["name"] for tool in conversation(tools=tools).tools]
    assert names == ["agents__f", "agents__patch"]
    assert read({**CALL, "namespace": "agents"})[0].tool_calls[0].name == "agents__f"


def test_what_nobody_here_can_run_is_left_out_and_noted() -> None:
    tools = [TOOL, {"type": "web_search"}, {"type": "mcp", "name": "m"}, {"type": "local_shell"}]
    assert len(conversation(tools=tools).tools) == 1
    assert ask(tools=tools).notes == tuple(
        Note(NoteKind.TOOL_IGNORED, name) for name in ("web_search", "m", "local_shell")
    )


def test_a_form_of_the_text_is_a_guide() -> None:
    schema = {"type": "object"}
    form = {"type": "json_schema", "name": "n", "schema": schema, "strict": True}
    assert ask(text={"format": form}).sampling.guide == Guide("json", schema)
    assert ask(text={"format": {"type": "json_object"}}).sampling.guide == Guide("object")
    assert ask(text={"format": {"type": "text"}}).sampling.guide is None
    assert ask(text={"format": form}).given == set()


def test_guides_may_be_vllms_too() -> None:
    found = ask(structured_outputs={"regex": "a+"})
    assert (found.sampling.guide, found.guide_field) == (Guide("regex", "a+"), "structured_outputs")
    assert ask(text={"format": {"type": "json_object"}}).guide_field == "text.format"


@pytest.mark.parametrize(
    ("choice", "mode", "tool"),
    [
        (None, "auto", None),
        ("none", "none", None),
        ("required", "required", None),
        ({"type": "function", "name": "f"}, "required", "f"),
        ({"type": "custom", "name": "patch"}, "required", "patch"),
        ({"type": "function", "name": "spawn", "namespace": "agents"}, "required", "agents__spawn"),
        ({"type": "allowed_tools", "mode": "required", "tools": [TOOL]}, "required", None),
    ],
)
def test_which_tool_has_to_be_called(choice: Any, mode: str, tool: str | None) -> None:
    space = {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "spawn"}]}
    found = ask(tools=[TOOL, CUSTOM, space], tool_choice=choice)
    assert (found.tool_choice, found.tool) == (mode, tool)


def test_calls_may_have_to_come_one_by_one() -> None:
    assert ask(tools=[TOOL], parallel_tool_calls=False).single_call
    assert not ask(tools=[TOOL], parallel_tool_calls=True).single_call


def test_allowed_tools_are_all_that_the_model_knows() -> None:
    tools = [TOOL, CUSTOM, {"type": "web_search"}]
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [CUSTOM, {"type": "web_search"}]}
    found = conversation(tools=tools, tool_choice=allowed).tools
    assert [tool["function"]["name"] for tool in found] == ["patch"]


def test_wishes_that_cannot_be_granted_are_noted() -> None:
    fields: dict[str, Any] = {
        "include": ["file_search_call.results", "reasoning.encrypted_content"],
        "truncation": "auto",
        "text": {"verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "client_metadata": {},
        "store": False,
        "prompt_cache_key": "k",
        "max_tool_calls": None,
    }
    noted = {note.detail for note in ask(**fields).notes}
    ignored = {"include.file_search_call.results", "truncation", "text.verbosity", "reasoning.summary"}
    assert noted == ignored | {"client_metadata"}
    assert ask(**fields).labels == {"store": False, "prompt_cache_key": "k"}


def test_what_is_said_of_the_request_is_in_one_line() -> None:
    """A frame ends at a blank line: nothing that a caller has laid out over several may be carried into one."""
    body = b'{"model": "m", "input": "hi", "tools": [\n\n{"type": "function",\n\n"name": "f"}\n], "metadata": null}'
    frames = responses.decode(body, lambda id: b"").encoder.sse(opened())
    assert frames.count(b"\n\n") == 2
    assert b'"tools":[{"type":"function","name":"f"}]' in frames
    assert b'"metadata":{}' in frames
