"""Our template for the bundled model: its own words without tools, and append-only with them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from stenograph.assets import smollm2
from stenograph.assets.gguf import read_gguf
from stenograph.core import JSON, Message, ToolCall
from stenograph.errors import ConfigError
from stenograph.render.template import Template

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
TOOL = {"type": "function", "function": {"name": "add", "description": "a < b & ä", "parameters": {}}}
CLOSE = "<|im_end|>\n"

texts = st.text(st.sampled_from(" \n\tab<|>{}ä日"), max_size=12)
arguments = st.dictionaries(st.sampled_from("xy"), st.one_of(st.integers(), texts, st.lists(st.booleans())))
calls = st.builds(ToolCall, id=st.just("c"), name=st.sampled_from(["add", "find"]), arguments=arguments)
plain = st.lists(st.builds(Message, role=st.sampled_from(["system", "user", "assistant"]), content=texts), max_size=6)
replies = st.builds(
    Message, role=st.just("assistant"), content=texts, tool_calls=st.tuples(calls) | st.tuples(calls, calls)
)
answers = st.builds(Message, role=st.sampled_from(["tool", "user", "system"]), content=texts)
rounds = st.lists(st.tuples(replies, st.lists(answers, min_size=1, max_size=3)), min_size=1, max_size=3)
openings = st.lists(st.builds(Message, role=st.sampled_from(["system", "user"]), content=texts), min_size=1, max_size=2)


@pytest.fixture(scope="module")
def ours() -> Template:
    try:
        files = smollm2.read()
    except ConfigError as error:
        pytest.skip(error.message)
    assert files.chat_template
    return Template(files.chat_template, files.special_tokens)


@pytest.fixture(scope="module")
def its_own(ours: Template) -> Template:
    files = read_gguf(smollm2.find())
    assert files.chat_template
    assert files.chat_template != ours.source
    return Template(files.chat_template, files.special_tokens)


def seen(message: Message) -> dict[str, JSON]:
    functions = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    calls = {"tool_calls": [{"type": "function", "function": function} for function in functions]}
    return {"role": message.role, "content": message.content or ""} | (calls if functions else {})


def render(
    template: Template, messages: Sequence[Message], tools: Sequence[JSON] = (), *, generate: bool = True
) -> str:
    return template.render([seen(message) for message in messages], tools, {}, generate=generate, now=NOW)


@given(messages=plain, generate=st.booleans())
def test_without_tools_it_writes_what_the_models_own_writes(
    ours: Template, its_own: Template, messages: list[Message], generate: bool
) -> None:
    assert render(ours, messages, generate=generate) == render(its_own, messages, generate=generate)


@given(opening=openings, rounds=rounds, tools=st.sampled_from([(), (TOOL,), (TOOL, TOOL)]))
def test_a_prompt_and_its_reply_begin_the_next_prompt(
    ours: Template, opening: list[Message], rounds: list[tuple[Message, list[Message]]], tools: tuple[Any, ...]
) -> None:
    messages = opening
    for reply, answers in rounds:
        prompt = render(ours, messages, tools)
        with_reply = render(ours, [*messages, reply], tools, generate=False)
        messages = [*messages, reply, *answers]
        assert with_reply.startswith(prompt)
        assert with_reply.endswith(CLOSE)
        assert render(ours, messages, tools).startswith(with_reply)


def test_tools_calls_and_results_read_like_this(ours: Template) -> None:
    call = ToolCall(id="c1", name="add", arguments={"a": 1, "b": "ä"})
    conversation = (
        Message("user", "1 + ä?"),
        Message("assistant", "Let me see.", tool_calls=(call, call)),
        Message("tool", "3", tool_call_id="c1"),
        Message("tool", "4", tool_call_id="c2"),
    )
    assert render(ours, conversation, [TOOL]) == (
        "<|im_start|>system\n"
        "You are a helpful AI assistant named SmolLM, trained by Hugging Face\n\n"
        "# Tools\n\n"
        "You may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        "<tools>\n"
        '{"type": "function", "function": {"name": "add", "description": "a < b & ä", "parameters": {}}}\n'
        "</tools>\n\n"
        "For each function call, return a json object with function name and arguments within "
        "<tool_call></tool_call> XML tags:\n"
        "<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n'
        "</tool_call><|im_end|>\n"
        "<|im_start|>user\n"
        "1 + ä?<|im_end|>\n"
        "<|im_start|>assistant\n"
        "Let me see.\n"
        '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "ä"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "ä"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n"
        "<tool_response>\n3\n</tool_response>\n"
        "<tool_response>\n4\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_a_system_prompt_of_the_callers_own_gets_the_tools(ours: Template) -> None:
    prompt = render(ours, [Message("system", "Be brief."), Message("user", "hi")], [TOOL])
    assert prompt.startswith("<|im_start|>system\nBe brief.\n\n# Tools\n")
    assert prompt.count("# Tools") == 1


def test_a_call_without_words_opens_the_turn(ours: Template) -> None:
    call = ToolCall(id="c", name="add", arguments={})
    assert "<|im_start|>assistant\n<tool_call>\n{" in render(ours, [Message("assistant", tool_calls=(call,))], [TOOL])


def test_arguments_that_are_no_object_are_written_as_they_are(ours: Template) -> None:
    call = ToolCall(id="c", name="add", arguments='{"a": ')
    assert '{"name": "add", "arguments": {"a": }\n' in render(ours, [Message("assistant", tool_calls=(call,))], [TOOL])


def test_the_bundled_model_is_named_and_described(ours: Template) -> None:
    files = smollm2.read()
    assert (files.name, files.eos_token, files.max_model_len) == ("smollm2", "<|im_end|>", 8192)
