"""What a Messages body may say, and what it is told where it may not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stenograph.core import JSON, Ask, Conversation, Guide, Message
from stenograph.errors import CallerError
from stenograph.wire import messages
from tests.wire.answers import token_bytes

HI: list[JSON] = [{"role": "user", "content": "Hi"}]
TOOL: JSON = {"name": "look", "input_schema": {"type": "object"}}
SEARCH: JSON = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}


def ask(**fields: JSON) -> Ask:
    return messages.decode(json.dumps({"model": "m", "messages": HI, **fields}).encode(), token_bytes).ask


def conversation(**fields: JSON) -> Conversation:
    prompt = ask(**fields).prompt
    assert isinstance(prompt, Conversation)
    return prompt


def heard(*blocks: JSON) -> dict[str, JSON]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def spoken(*blocks: JSON) -> dict[str, JSON]:
    return {"messages": [*HI, {"role": "assistant", "content": list(blocks)}, *HI]}


def details(**fields: JSON) -> list[str]:
    return [note.detail for note in ask(**fields).notes]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        (heard({"type": "image", "source": {}}), "messages[0].content[0].type"),
        (heard({"type": "document", "source": {}}), "messages[0].content[0].type"),
        (heard({"type": "text"}), "messages[0].content[0].text"),
        (heard({"type": "tool_use", "id": "a", "name": "b", "input": {}}), "messages[0].content[0].type"),
        (heard({"type": "tool_result"}), "messages[0].content[0].tool_use_id"),
        (
            heard(
                {"type": "text", "text": "x"},
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}]},
            ),
            "messages[0].content[1].content[0].type",
        ),
        (spoken({"type": "tool_result", "tool_use_id": "a"}), "messages[1].content[0].type"),
        (spoken({"type": "tool_use", "id": "a", "input": {}}), "messages[1].content[0].name"),
        (spoken({"type": "server_tool_use", "id": "a", "name": "web_search"}), "messages[1].content[0].type"),
        (
            spoken({"type": "thinking", "thinking": "", "signature": "stenograph/text/t.0/%%%"}),
            "messages[1].content[0].signature",
        ),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tools": [{"name": "look"}]}, "tools[0].input_schema"),
        ({"n": 2}, "n"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "listen"}}, "tool_choice.name"),
        ({"stop": ["a"], "stop_sequences": ["b"]}, "stop"),
        ({"top_p": 0}, "top_p"),
        ({"thinking": {"type": "perhaps"}}, "thinking.type"),
        ({"logit_bias": {"1": 1000}}, "logit_bias"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"guided_json": {}}, "guided_json"),
        ({"output_config": {"format": {"type": "regex"}}}, "output_config.format.type"),
        ({"thread": {"type": "create"}}, "thread"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(CallerError) as caught:
        ask(**fields)
    assert caught.value.param == param
    assert caught.value.status == 400


def test_pictures_are_not_supported_yet_and_it_says_so() -> None:
    with pytest.raises(CallerError, match="image are not supported yet"):
        ask(**heard({"type": "image", "source": {}}))


def test_a_thread_is_refused_with_the_code_that_the_sdk_knows() -> None:
    with pytest.raises(CallerError) as caught:
        ask(thread={"type": "continue", "previous_message_id": "msg_1"})
    told = json.loads(messages.error_body(caught.value))["error"]["details"]
    assert told == {"error_code": "thread_unsupported_request"}


def test_results_and_text_are_messages_in_their_order() -> None:
    blocks: list[JSON] = [
        {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        {"type": "tool_result", "tool_use_id": "b", "is_error": True},
        {"type": "text", "text": "and"},
        {"type": "text", "text": "then"},
        {"type": "tool_result", "tool_use_id": "c", "content": []},
    ]
    assert conversation(**heard(*blocks)).messages == (
        Message("tool", "one", tool_call_id="a"),
        Message("tool", "", tool_call_id="b"),
        Message("user", "and\nthen"),
        Message("tool", "", tool_call_id="c"),
    )
    assert details(**heard(*blocks)) == ["messages.tool_result.is_error"]


def test_a_users_turns_in_a_row_are_one_and_an_assistants_are_not() -> None:
    several = [*HI, *HI, *2 * [{"role": "assistant", "content": "Well"}]]
    assert [message.content for message in conversation(messages=several).messages] == ["Hi\nHi", "Well", "Well"]


def test_instructions_stand_first_and_where_they_come_later() -> None:
    later: JSON = {"role": "system", "content": [{"type": "text", "text": "Be kind."}]}
    told = conversation(system="Be brief.", messages=[*HI, later, *HI]).messages
    assert [message.role for message in told] == ["system", "user", "system", "user"]
    assert conversation(system=[]).messages == (Message("user", "Hi"),)
    assert conversation(system="").messages[0] == Message("system", "")


def test_thinking_that_cannot_be_read_is_noted_and_what_is_ours_comes_back() -> None:
    theirs, ours, hidden = (
        {"type": "thinking", "thinking": "", "signature": signature}
        for signature in ("EqoBCkgIARAB", "stenograph/shown/t.0", "stenograph/text/t.1/aG0=")
    )
    assert conversation(**spoken(theirs, ours)).messages[1].reasoning is None
    assert details(**spoken(theirs)) == ["messages.thinking"]
    assert details(**spoken(ours, hidden)) == []
    assert conversation(**spoken(ours, hidden)).messages[1].reasoning == "hm"
    assert ask(**spoken(theirs, ours, hidden)).named == {"t.0", "t.1"}
    unsigned = {"type": "thinking", "thinking": "so"}
    assert conversation(**spoken(unsigned, hidden)).messages[1].reasoning == "sohm"


def test_tools_are_deferred_only_where_somebody_can_look_them_up() -> None:
    later = {**TOOL, "name": "later", "defer_loading": True}
    reference: JSON = {"type": "tool_reference", "tool_name": "later"}
    found = heard({"type": "tool_result", "tool_use_id": "a", "content": [reference]})
    asked = conversation(tools=[TOOL, later], **found)
    assert [tool["function"]["name"] for tool in asked.tools] == ["look"]
    assert asked.messages[0].content == '{"name":"later","parameters":{"type":"object"}}'
    asked = conversation(tools=[TOOL, later, SEARCH], **found)
    assert [tool["function"]["name"] for tool in asked.tools] == ["look", "later"]
    assert asked.messages[0].content == "later"


def test_thinking_has_its_switches() -> None:
    assert conversation(thinking={"type": "disabled"}).template_arguments == {"enable_thinking": False}
    effort = conversation(output_config={"effort": "high"}).template_arguments
    assert effort == {"enable_thinking": True, "reasoning_effort": "high"}
    assert conversation(chat_template_kwargs={"mood": "good"}).template_arguments == {"mood": "good"}


def test_a_schema_for_the_answer_is_a_guide() -> None:
    form: JSON = {"type": "json_schema", "schema": {"type": "object"}}
    for fields in ({"output_config": {"format": form}}, {"output_format": form}):
        asked = ask(**fields)
        assert (asked.sampling.guide, asked.guide_field.split(".")[0]) == (Guide("json", {"type": "object"}), *fields)


def test_tools_may_be_demanded() -> None:
    def chosen(**choice: JSON) -> tuple[str, str | None, bool]:
        asked = ask(tools=[TOOL], tool_choice=choice)
        return asked.tool_choice, asked.tool, asked.single_call

    assert chosen(type="auto") == ("auto", None, False)
    assert chosen(type="none") == ("none", None, False)
    assert chosen(type="any") == ("required", None, False)
    assert chosen(type="tool", name="look", disable_parallel_tool_use=True) == ("required", "look", True)
    assert chosen(type="auto", disable_parallel_tool_use=True) == ("auto", None, True)


def test_labels_are_kept_and_what_is_anthropics_own_is_noted() -> None:
    asked = ask(metadata={"user_id": "u"}, service_tier="auto", mcp_servers=[{}], cache_control={"type": "ephemeral"})
    assert asked.labels == {"metadata": {"user_id": "u"}, "service_tier": "auto"}
    assert [note.detail for note in asked.notes] == ["mcp_servers"]


@pytest.mark.parametrize(("display", "noted"), [("summarized", []), ("omitted", []), ("updates", ["thinking.display"])])
def test_a_way_to_show_thinking_that_nobody_has_documented_fails_no_call(display: str, noted: list[str]) -> None:
    """Claude Code sends one, and after a 400 tries the whole call again without it."""
    assert details(thinking={"type": "adaptive", "display": display}) == noted
