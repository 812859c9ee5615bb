"""What a chat body may say, and what it is told where it may not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stenograph.core import Ask, Conversation, Guide, Note, NoteKind
from stenograph.errors import CallerError
from stenograph.wire import chat
from stenograph.wire.codec import Decoded
from stenograph.wire.extras import NEUTRAL
from stenograph.wire.sampling import PARAMETERS

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f"}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def decode(**fields: Any) -> Decoded:
    body = {"model": "policy", "messages": [USER], **fields}
    return chat.decode(json.dumps(body).encode(), lambda id: b"")


def ask(**fields: Any) -> Ask:
    return decode(**fields).ask


def conversation(**fields: Any) -> Conversation:
    prompt = ask(**fields).prompt
    assert isinstance(prompt, Conversation)
    return prompt


def only_message(message: dict[str, Any]) -> Any:
    return conversation(messages=[message]).messages[0]


def assistant(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", **fields}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"model": None}, "model", "expected string, got null"),
    ({"messages": []}, "messages", "length >= 1"),
    ({"messages": None}, "messages", "expected array"),
    ({"messages": ["hi"]}, "messages[0]", "expected object"),
    ({"messages": [USER, {"content": "x"}]}, "messages[1].role", "required"),
    ({"messages": [USER, {"role": "usr", "content": "x"}]}, "messages[1].role", "no such choice as 'usr'"),
    ({"messages": [{"role": "user"}]}, "messages[0].content", "required"),
    ({"messages": [{"role": "system", "content": None}]}, "messages[0].content", "required"),
    ({"messages": [user(3)]}, "messages[0].content", "string or array or null, got integer"),
    ({"messages": [user([{"type": "image_url", "image_url": {}}])]}, "messages[0].content[0].type", "no images"),
    ({"messages": [user(["a", {"type": "input_audio"}])]}, "messages[0].content[1].type", "audio"),
    ({"messages": [user([{"type": "text"}])]}, "messages[0].content[0].text", "required"),
    ({"messages": [user([{"type": "text", "text": 3}])]}, "messages[0].content[0].text", "string"),
    ({"messages": [assistant(audio={"id": "a"})]}, "messages[0].audio", "not supported yet"),
    ({"messages": [assistant(reasoning_content=[])]}, "messages[0].reasoning_content", "string"),
    ({"messages": [assistant(tool_calls=[{}])]}, "messages[0].tool_calls[0].function", "required"),
    ({"messages": [assistant(tool_calls=[{"function": {}}])]}, "messages[0].tool_calls[0].function.name", "required"),
    ({"messages": [assistant(tool_calls=[{**CALL, "type": "custom"}])]}, "messages[0].tool_calls[0].type", "custom"),
    (
        {"messages": [assistant(tool_calls=[{"function": {"name": "f", "arguments": 3}}])]},
        "messages[0].tool_calls[0].function.arguments",
        "string or object or null",
    ),
    ({"messages": [assistant(prefix=True), USER]}, "messages[0].prefix", "only the last message"),
    ({"messages": [{**USER, "partial": True}]}, "messages[0].partial", "only the last message"),
    ({"temperature": -0.1}, "temperature", ">= 0"),
    ({"temperature": "hot"}, "temperature", "number or null, got string"),
    ({"temperature": True}, "temperature", "got boolean"),
    ({"top_p": 0}, "top_p", "> 0"),
    ({"top_p": 1.1}, "top_p", "<= 1"),
    ({"top_k": -2}, "top_k", ">= -1"),
    ({"top_k": 1.5}, "top_k", "integer"),
    ({"min_p": 2}, "min_p", "<= 1"),
    ({"presence_penalty": 2.5}, "presence_penalty", "<= 2"),
    ({"frequency_penalty": -2.5}, "frequency_penalty", ">= -2"),
    ({"repetition_penalty": 0}, "repetition_penalty", "> 0"),
    ({"seed": 2**63}, "seed", "<="),
    ({"max_tokens": 0}, "max_tokens", ">= 1"),
    ({"max_completion_tokens": -1}, "max_completion_tokens", ">= 1"),
    ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens", "max_completion_tokens is 4"),
    ({"min_tokens": -1}, "min_tokens", ">= 0"),
    ({"min_tokens": 5, "max_tokens": 4}, "min_tokens", "above the limit of 4"),
    ({"stop": ""}, "stop", "length >= 1"),
    ({"stop": ["a", ""]}, "stop[1]", "length >= 1"),
    ({"stop": {"a": 1}}, "stop", "string or array or null"),
    ({"stop_token_ids": [1, -1]}, "stop_token_ids[1]", ">= 0"),
    ({"stop_token_ids": [2**31]}, "stop_token_ids[0]", "<="),
    ({"ignore_eos": "yes"}, "ignore_eos", "boolean"),
    ({"logit_bias": {"the": 1}}, "logit_bias", "as a key"),
    ({"logit_bias": {"-5": 1}}, "logit_bias", ">= 0"),
    ({"logit_bias": {"5": 101}}, "logit_bias", "<= 100"),
    ({"n": 0}, "n", ">= 1"),
    ({"n": 129}, "n", "<= 128"),
    ({"logprobs": 5}, "logprobs", "boolean"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "<= 20"),
    ({"top_logprobs": 2}, "top_logprobs", "logprobs to be true"),
    ({"stream": "yes"}, "stream", "boolean"),
    ({"stream_options": {"include_usage": True}}, "stream_options", "stream to be true"),
    ({"stream": True, "stream_options": {"include_usage": 3}}, "stream_options.include_usage", "boolean"),
    ({"return_token_ids": 1}, "return_token_ids", "boolean"),
    ({"tools": {}}, "tools", "array"),
    ({"tools": [TOOL, {"type": "function"}]}, "tools[1].function", "required"),
    ({"tools": [{"type": "function", "function": {"name": 3}}]}, "tools[0].function.name", "string"),
    ({"tools": [{"type": None, "function": {"name": "f"}}]}, "tools[0].type", "string"),
    ({"tool_choice": "required"}, "tool_choice", "no tools"),
    ({"tool_choice": TOOL}, "tool_choice.function.name", "no tool f"),
    ({"tools": [TOOL], "tool_choice": "any"}, "tool_choice", "no such choice as 'any'"),
    ({"response_format": {"type": "yaml"}}, "response_format.type", "no such choice as 'yaml'"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "required"),
    ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format.json_schema.schema", "required"),
    ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs", "not regex, choice"),
    ({"structured_outputs": {"choice": []}}, "structured_outputs.choice", "length >= 1"),
    ({"structured_outputs": {"json": "{"}}, "structured_outputs.json", "no JSON object"),
    ({"structured_outputs": {"whitespace_pattern": " "}}, "structured_outputs.whitespace_pattern", "no such field"),
    (
        {"structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"}},
        "structured_outputs",
        "response_format says otherwise",
    ),
    ({"response_format": {}}, "response_format.type", "required"),
    ({"reasoning_effort": "huge"}, "reasoning_effort", "no such choice"),
    ({"reasoning": {"effort": 3}}, "reasoning.effort", "string"),
    ({"thinking": {"type": "on"}}, "thinking.type", "no such choice"),
    ({"chat_template_kwargs": []}, "chat_template_kwargs", "object"),
    ({"chat_template_kwargs": {"tools": []}}, "chat_template_kwargs.tools", "sets it itself"),
    ({"continue_final_message": True}, "continue_final_message", "not an assistant's"),
    ({"messages": [assistant(content="a")], "continue_final_message": False}, "continue_final_message", "always"),
    ({"add_generation_prompt": False}, "add_generation_prompt", "true otherwise"),
    ({"messages": [assistant(content="a")], "add_generation_prompt": True}, "add_generation_prompt", "false for"),
    ({"session_id": "a/b"}, "session_id", "1 to 128 characters"),
    ({"guided_json": {"type": "object"}}, "guided_json", "not supported here"),
    ({"best_of": 2}, "best_of", "not supported here"),
    ({"functions": [{"name": "f"}]}, "functions", "not supported here"),
    ({"modalities": ["text", "audio"]}, "modalities", "not supported here"),
    ({"skip_special_tokens": False}, "skip_special_tokens", "not supported here"),
]


@pytest.mark.parametrize(("fields", "param", "words"), WRONG, ids=[f"{param}-{words}" for _, param, words in WRONG])
def test_a_wrong_field_is_named_and_told_what_is_wrong(fields: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(CallerError) as caught:
        decode(**fields)
    error = caught.value
    assert (error.status, error.param) == (400, param)
    assert error.message.startswith(f"{param}: ")
    assert words in error.message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"hello",
        b'{"model": NaN}',
        b'{"model": "\xff"}',
        b'{"model":"m","messages":[{"role":"user","content":"cut \\ud83d"}]}',
        b'{"model":"m","messages":[{"role":"user","content":"x"}],"x":' + b"[" * 10**5 + b"]" * 10**5 + b"}",
    ],
    ids=["empty", "cut", "word", "nan", "latin-1", "half a surrogate pair", "deep"],
)
def test_what_is_not_json_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(CallerError) as caught:
        chat.decode(body, lambda id: b"")
    assert (caught.value.status, caught.value.code) == (400, "invalid_json")


def test_a_body_that_is_no_object() -> None:
    with pytest.raises(CallerError, match="the body: expected object, got array"):
        chat.decode(b"[]", lambda id: b"")


@pytest.mark.parametrize("name", sorted(NEUTRAL))
def test_a_parameter_that_is_not_served_may_be_neutral_and_is_refused_otherwise(name: str) -> None:
    for value in (None, *NEUTRAL[name]):
        assert ask(**{name: value}).notes == ()
    with pytest.raises(CallerError) as caught:
        decode(**{name: "something else"})
    assert (caught.value.param, caught.value.code) == (name, "unsupported_parameter")


def test_what_is_not_set_is_neutral_and_null_is_not_set() -> None:
    bare = ask()
    assert bare.sampling.unusual() == ()
    assert bare.given == frozenset()
    nulls = dict.fromkeys([*PARAMETERS, "max_completion_tokens", "n", "tools", "logprobs", "stream", "user", "unknown"])
    assert ask(**nulls) == bare


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"temperature": 0}, "temperature", 0.0),
        ({"temperature": 3.5}, "temperature", 3.5),
        ({"top_p": 1}, "top_p", 1.0),
        ({"top_k": -1}, "top_k", 0),
        ({"top_k": 40}, "top_k", 40),
        ({"min_p": 0.1}, "min_p", 0.1),
        ({"presence_penalty": -2}, "presence_penalty", -2.0),
        ({"frequency_penalty": 2}, "frequency_penalty", 2.0),
        ({"repetition_penalty": 1.1}, "repetition_penalty", 1.1),
        ({"seed": -7}, "seed", -7),
        ({"max_tokens": 9}, "max_tokens", 9),
        ({"max_completion_tokens": 9}, "max_tokens", 9),
        ({"max_tokens": 9, "max_completion_tokens": 9}, "max_tokens", 9),
        ({"min_tokens": 2}, "min_tokens", 2),
        ({"stop": "x"}, "stop", ("x",)),
        ({"stop": ["x", "y"]}, "stop", ("x", "y")),
        ({"stop": []}, "stop", ()),
        ({"stop_token_ids": [3]}, "stop_token_ids", (3,)),
        ({"ignore_eos": True}, "ignore_eos", True),
        ({"logit_bias": {"5": -100}}, "logit_bias", {5: -100.0}),
    ],
)
def test_a_sampling_parameter_arrives(fields: dict[str, Any], name: str, value: object) -> None:
    decoded = ask(**fields)
    assert getattr(decoded.sampling, name) == value
    assert decoded.given == {name}


def test_a_seed_of_minus_one_is_none() -> None:
    assert (ask(seed=-1).sampling.seed, ask(seed=-1).given) == (None, frozenset())


def test_other_fields_are_left_out_and_noted_and_labels_kept() -> None:
    decoded = ask(
        user="u", metadata={"a": 1}, store=False, service_tier=None, cache_salt="x", web_search_options={}, extra=None
    )
    assert decoded.labels == {"user": "u", "metadata": {"a": 1}, "store": False}
    assert decoded.notes == (
        Note(NoteKind.FIELD_IGNORED, "cache_salt"),
        Note(NoteKind.TOOL_IGNORED, "web_search_options"),
    )


def test_tools_are_kept_as_they_were_sent() -> None:
    odd = {"function": {"strict": True, "parameters": {"b": 1, "a": 2}, "name": "f"}, "type": "function", "x": 1}
    (tool,) = conversation(tools=[odd]).tools
    assert json.dumps(tool) == json.dumps(odd)
    assert conversation(tools=[]).tools == ()


@pytest.mark.parametrize("choice", ["auto", None])
def test_tools_are_called_as_the_model_likes(choice: str | None) -> None:
    assert ask(tools=[TOOL], tool_choice=choice, parallel_tool_calls=True).tool_choice == "auto"


def test_without_tools_nothing_is_asked_of_them() -> None:
    assert conversation(parallel_tool_calls=False, tools=[{"type": "web_search"}]).tools == ()


def test_tool_choice_none_keeps_the_tools_in_the_prompt() -> None:
    assert conversation(tools=[TOOL], tool_choice="none").tools == (TOOL,)
    assert ask(tools=[TOOL], tool_choice="none").tool_choice == "none"


@pytest.mark.parametrize(
    ("fields", "arguments"),
    [
        ({"reasoning_effort": "high"}, {"reasoning_effort": "high", "enable_thinking": True}),
        ({"reasoning_effort": "none"}, {"reasoning_effort": "none", "enable_thinking": False}),
        ({"reasoning": {"effort": "low"}}, {"reasoning_effort": "low", "enable_thinking": True}),
        (
            {"reasoning": {"effort": "low"}, "reasoning_effort": "max"},
            {"reasoning_effort": "max", "enable_thinking": True},
        ),
        ({"reasoning": {"enabled": False}}, {"enable_thinking": False}),
        ({"reasoning": {}}, {}),
        ({"thinking": {"type": "disabled"}}, {"enable_thinking": False}),
        ({"thinking": {"type": "adaptive"}}, {"enable_thinking": True}),
        ({"thinking": True}, {"enable_thinking": True}),
        ({"enable_thinking": False, "thinking": True}, {"enable_thinking": False}),
        ({"enable_thinking": True, "chat_template_kwargs": {"enable_thinking": False}}, {"enable_thinking": False}),
        ({"chat_template_kwargs": {"thinking": True, "x": [1]}}, {"thinking": True, "x": [1]}),
    ],
)
def test_switches_of_thinking_are_template_arguments(fields: dict[str, Any], arguments: dict[str, Any]) -> None:
    assert conversation(**fields).template_arguments == arguments


def test_what_a_switch_cannot_switch_is_noted() -> None:
    decoded = ask(thinking={"type": "enabled", "budget_tokens": 9}, reasoning={"max_tokens": 9, "exclude": True})
    assert [note.detail for note in decoded.notes] == [
        "thinking.budget_tokens",
        "reasoning.max_tokens",
        "reasoning.exclude",
    ]


def test_continuous_usage_is_noted() -> None:
    decoded = ask(stream=True, stream_options={"continuous_usage_stats": True})
    assert decoded.notes == (Note(NoteKind.FIELD_IGNORED, "stream_options.continuous_usage_stats"),)


@pytest.mark.parametrize(
    ("arguments", "parsed", "text"),
    [
        ('{"b": 1.0, "a": [true]}', {"b": 1.0, "a": [True]}, '{"b": 1.0, "a": [true]}'),
        ({"a": 1}, {"a": 1}, None),
        ("", {}, ""),
        (" ", {}, " "),
        (None, {}, None),
        ("{'a': False}", "{'a': False}", "{'a': False}"),
        ("[1]", "[1]", "[1]"),
        ("not", "not", "not"),
        ('{"a": NaN}', '{"a": NaN}', '{"a": NaN}'),
        ('{"a": "\\ud83d"}', '{"a": "\\ud83d"}', '{"a": "\\ud83d"}'),
        ("[" * 10**5, "[" * 10**5, "[" * 10**5),
    ],
    ids=["object", "parsed", "empty", "blank", "null", "python", "array", "word", "nan", "surrogate", "deep"],
)
def test_arguments_are_parsed_where_they_are_an_object_and_never_mended(
    arguments: Any, parsed: object, text: str | None
) -> None:
    message = only_message(assistant(tool_calls=[{"id": "c", "function": {"name": "f", "arguments": arguments}}]))
    (call,) = message.tool_calls
    assert (call.id, call.name, call.arguments, call.text) == ("c", "f", parsed, text)


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (user("a"), "a"),
        (user(""), ""),
        (user([]), ""),
        (user([{"type": "text", "text": "a"}, "b", {"type": "input_text", "text": "c"}]), "a\nb\nc"),
        (assistant(content=[{"text": "a "}, {"type": "output_text", "text": "b"}]), "a b"),
        (assistant(content=[{"type": "refusal", "refusal": "no"}]), "no"),
        (assistant(content=None, refusal="no"), "no"),
        (assistant(), None),
        ({"role": "tool", "content": None}, None),
    ],
)
def test_content(message: dict[str, Any], content: str | None) -> None:
    assert only_message(message).content == content


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({}, None),
        ({"reasoning_content": None}, None),
        ({"reasoning_content": ""}, ""),
        ({"reasoning_content": "a"}, "a"),
        ({"reasoning": "b"}, "b"),
        ({"reasoning_content": "a", "reasoning": "b"}, "b"),
    ],
)
def test_reasoning_that_was_not_sent_is_not_empty(fields: dict[str, Any], reasoning: str | None) -> None:
    assert only_message(assistant(content="x", **fields)).reasoning == reasoning


def test_reasoning_details_are_noted_once() -> None:
    echoed = assistant(content="x", reasoning_details=[{"type": "reasoning.text"}])
    assert ask(messages=[echoed, USER, echoed, USER]).notes == (
        Note(NoteKind.FIELD_IGNORED, "messages.reasoning_details"),
    )


def test_the_body_says_stream_session_and_its_own_hash() -> None:
    plain, streamed = decode(), decode(stream=True, session_id="run:1.a_B-2")
    assert (plain.stream, plain.session_id) == (False, None)
    assert (streamed.stream, streamed.session_id) == (True, "run:1.a_B-2")
    assert plain.body_hash == decode().body_hash != streamed.body_hash
    assert len(plain.body_hash) == 64


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
TAG = {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}
GUIDED: list[tuple[dict[str, Any], Guide | None]] = [
    ({"response_format": {"type": "text"}}, None),
    ({"response_format": {"type": "json_object"}}, Guide("object")),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}},
        Guide("json", SCHEMA),
    ),
    ({"response_format": TAG}, Guide("tag", TAG)),
    ({"structured_outputs": {}}, None),
    ({"structured_outputs": {"json_object": False}}, None),
    ({"structured_outputs": {"json_object": True}}, Guide("object")),
    ({"structured_outputs": {"json": SCHEMA}}, Guide("json", SCHEMA)),
    ({"structured_outputs": {"json": json.dumps(SCHEMA)}}, Guide("json", SCHEMA)),
    ({"structured_outputs": {"regex": "a+"}}, Guide("regex", "a+")),
    ({"structured_outputs": {"choice": ["a", "b"]}}, Guide("choice", ["a", "b"])),
    ({"structured_outputs": {"grammar": 'root ::= "a"'}}, Guide("grammar", 'root ::= "a"')),
    ({"structured_outputs": {"structural_tag": json.dumps(TAG)}}, Guide("tag", TAG)),
]


@pytest.mark.parametrize(("fields", "guide"), GUIDED)
def test_a_form_is_asked_for_in_openais_words_or_vllms(fields: dict[str, Any], guide: Guide | None) -> None:
    found = ask(**fields)
    assert found.sampling.guide == guide
    assert guide is None or [found.guide_field] == list(fields)


def test_a_tool_is_required_or_named() -> None:
    required, named = ask(tools=[TOOL], tool_choice="required"), ask(tools=[TOOL], tool_choice=TOOL)
    assert (required.tool_choice, required.tool) == ("required", None)
    assert (named.tool_choice, named.tool) == ("required", "f")
    assert not named.single_call
    assert ask(tools=[TOOL], parallel_tool_calls=False).single_call
