"""A stream and a JSON answer say the same, as OpenAI's own SDK reads them; and what goes out comes back as it was."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
import msgspec
import openai
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from stenograph.core import Ask, Conversation, Done, Event, Message, Opened, Piece
from stenograph.session.canonical import canonicals
from stenograph.wire import chat, responses, sse
from stenograph.wire.codec import Decoded
from stenograph.wire.fold import fold
from tests.wire.answers import token_bytes
from tests.wire.replies import CUSTOM, TOOLS, replies

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
USER = {"role": "user", "content": "hi"}
LOGPROBS, SEALED = "message.output_text.logprobs", "reasoning.encrypted_content"
INCLUDES = st.lists(st.sampled_from([LOGPROBS, SEALED]), unique=True)


def decode(input: Any = "hi", **fields: Any) -> Decoded:
    return responses.decode(json.dumps({"model": "m", "input": input, "tools": TOOLS, **fields}).encode(), token_bytes)


def whole(events: Sequence[Event], **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(decode(**fields).encoder.json(events))
    return found


def stream(events: Sequence[Event], **fields: Any) -> bytes:
    encoder = decode(**fields).encoder
    return b"".join(encoder.sse(event) for event in events)


def payloads(stream: bytes) -> list[dict[str, Any]]:
    """Of each frame, whose name has to be the payload's type."""
    *frames, rest = stream.split(b"\n\n")
    assert rest == b""
    found = []
    for frame in frames:
        name, data = frame.split(b"\n")
        found.append(json.loads(data.removeprefix(b"data: ")))
        assert name.decode() == f"event: {found[-1]['type']}"
    return found


def through_the_sdk(stream: bytes, cuts: list[int]) -> tuple[Response, list[str]]:
    """The last response of `client.responses.stream()`, and the texts that the SDK itself has added up."""

    def parts() -> Iterator[bytes]:
        places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
        for start, end in itertools.pairwise(places):
            yield stream[start:end]

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=parts())

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    snapshots: dict[int, str] = {}
    last: Any = None
    with (
        openai.OpenAI(api_key="k", base_url="http://gateway.test/v1", http_client=http) as client,
        client.responses.stream(model="m", input="hi") as events,
    ):
        for last in events:
            if last.type in ("response.output_text.delta", "response.function_call_arguments.delta"):
                snapshots[last.output_index] = last.snapshot
    response = last.response.to_dict()
    for item in response["output"]:
        for place in (item, *item.get("content", ())):  # the SDK's own additions
            place.pop("parsed", None)
            place.pop("parsed_arguments", None)
    return Response.model_validate(response), [snapshots[place] for place in sorted(snapshots)]


@given(replies(), INCLUDES, st.booleans(), st.lists(st.integers(0, 10**6), max_size=5))
def test_the_stream_adds_up_to_the_json(
    events: list[Event], include: list[str], token_ids: bool, cuts: list[int]
) -> None:
    fields: dict[str, Any] = {"include": include, "return_token_ids": token_ids}
    expected = whole(events, **fields)
    found, texts = through_the_sdk(stream(events, **fields), cuts)
    assert found.to_dict() == Response.model_validate(expected).to_dict()
    written = [item["content"][0]["text"] for item in expected["output"] if item["type"] == "message"]
    written += [item["arguments"] for item in expected["output"] if item["type"] == "function_call"]
    assert sorted(texts) == sorted(text for text in written if text or text in texts)


@given(replies(), INCLUDES)
def test_every_event_is_one_that_openai_documents(events: list[Event], include: list[str]) -> None:
    found = payloads(stream(events, include=include))
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    for event in found:
        EVENT.validate_python(event, strict=False)
    assert [event["type"] for event in found[:2]] == ["response.created", "response.in_progress"]
    assert found[-1]["type"] == f"response.{found[-1]['response']['status']}"


@given(replies())
def test_items_are_opened_filled_and_closed_one_after_the_other(events: list[Event]) -> None:
    """Each delta belongs to the item that is open, and they add up to what it says when it is done."""
    found = payloads(stream(events))[2:-1]
    done: list[dict[str, Any]] = []
    for place, group in itertools.groupby(found, key=lambda event: event["output_index"]):
        first, *between, last = group
        assert (first["type"], last["type"]) == ("response.output_item.added", "response.output_item.done")
        assert place == len(done)
        done.append(last["item"])
        assert {event["item_id"] for event in between} == {first["item"]["id"]} == {last["item"]["id"]}
        deltas = "".join(event["delta"] for event in between if event["type"].endswith(".delta"))
        item = last["item"]
        said = item.get("arguments", item.get("input")) if "content" not in item else item["content"][0]["text"]
        assert deltas == said
    assert done == whole(events)["output"]


@given(replies())
def test_what_is_sampled_is_said_once(events: list[Event]) -> None:
    [choice] = fold(events).choices
    output = whole(events)["output"]
    texts = [item["content"][0]["text"] for item in output if item["type"] == "message"]
    thoughts = [item["content"][0]["text"] for item in output if item["type"] == "reasoning"]
    assert "".join(texts) == choice.content
    assert "".join(thoughts) == choice.reasoning
    assert [item["call_id"] for item in output if "call_id" in item] == [call.id for call in choice.calls]


@given(replies(), st.booleans())
def test_every_id_is_told_once_and_in_order(events: list[Event], streamed: bool) -> None:
    sampled = [id for event in events if isinstance(event, Piece) for id in event.ids.tolist()]
    prompts = [event.prompt.tolist() for event in events if isinstance(event, Opened)]
    fields = {"return_token_ids": True}
    *before, last = payloads(stream(events, **fields))
    assert not any("prompt_token_ids" in event["response"] for event in before if "response" in event)
    answer = last["response"] if streamed else whole(events, **fields)
    assert (answer["token_ids"], [answer["prompt_token_ids"]]) == (sampled, prompts)
    assert "token_ids" not in whole(events)


@given(replies())
def test_logprobs_stand_beside_the_text_they_were_sampled_with(events: list[Event]) -> None:
    output = whole(events, include=[LOGPROBS])["output"]
    told = [entry for item in output if item["type"] == "message" for entry in item["content"][0]["logprobs"]]
    silent: list[float] = []
    expected: list[float] = []
    for event in events:
        if isinstance(event, Piece):
            silent += event.logprobs.tolist()
            expected += silent if event.content else []
            silent = [] if event.content or event.reasoning or event.calls else silent
    assert [entry["logprob"] for entry in told] == expected


@given(replies())
def test_usage_counts_what_was_thought(events: list[Event]) -> None:
    usage = whole(events)["usage"]
    [done] = [event for event in events if isinstance(event, Done)]
    assert (usage["input_tokens"], usage["output_tokens"]) == (done.prompt_tokens, done.completion_tokens)
    assert 0 <= usage["output_tokens_details"]["reasoning_tokens"] <= usage["output_tokens"]


@given(replies())
def test_each_event_is_whole_frames(events: list[Event]) -> None:
    """So a keep-alive may stand between any two."""
    encoder = decode().encoder
    parts = [encoder.sse(event) for event in events]
    assert all(part == b"" or part.endswith(b"\n\n") for part in parts)
    kept_alive, _ = through_the_sdk(sse.KEEP_ALIVE.join([b"", *parts, b""]), [])
    assert kept_alive == through_the_sdk(b"".join(parts), [])[0]


# ------------------------------------------------------------------------------------------------------- there and back


def messages(ask: Ask) -> tuple[Message, ...]:
    assert isinstance(ask.prompt, Conversation)
    return ask.prompt.messages


def the_same(ours: Message, theirs: Message) -> bool:
    """As matching has it: the record's own reply, and what came back, from which nothing has to be restored."""
    return canonicals([ours]) == canonicals([theirs]) and ours.reasoning == theirs.reasoning


def replied(events: list[Event]) -> Message:
    """What the record holds, as an agent of Chat Completions sends it back."""
    [choice] = fold(events).choices
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in choice.calls
    ]
    message = {"role": "assistant", "content": choice.content, "tool_calls": calls}
    if choice.reasoning:
        message["reasoning_content"] = choice.reasoning
    return messages(chat.decode(json.dumps({"model": "m", "messages": [USER, message, USER]}).encode(), bytes).ask)[1]


@given(replies())
def test_a_reply_comes_back_as_it_was(events: list[Event]) -> None:
    output = whole(events, include=[SEALED])["output"]
    results = [{"type": f"{item['type']}_output", "call_id": item["call_id"], "output": "x"} for item in _calls(output)]
    ask = decode([USER, *output, *results, USER]).ask
    assert the_same(replied(events), messages(ask)[1])
    assert [message.tool_call_id for message in messages(ask)[2:-1]] == [item["call_id"] for item in _calls(output)]
    assert ask.named == {"turn-0"}


def _calls(output: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for item in output if "call_id" in item]


@given(replies())
def test_reasoning_comes_back_sealed(events: list[Event]) -> None:
    """As from an agent that keeps what is encrypted and nothing else."""
    output = whole(events, include=[SEALED])["output"]
    kept = [{**item, "content": None} if item["type"] == "reasoning" else item for item in output]
    assert the_same(replied(events), messages(decode([USER, *kept]).ask)[1])


def is_plain(item: dict[str, Any]) -> bool:
    """A call whose arguments are the input of a custom tool, or a function's."""
    return not item["id"].startswith("ctj")


@given(replies())
def test_a_reply_without_ids_comes_back_as_it_was(events: list[Event]) -> None:
    """But for a custom call that is none: what its arguments were, only its id says."""
    output = whole(events)["output"]
    if all(map(is_plain, output)):
        nameless = [{key: value for key, value in item.items() if key != "id"} for item in output]
        assert the_same(replied(events), messages(decode([USER, *nameless]).ask)[1])


@given(replies())
def test_results_between_the_calls_of_one_reply_stand_behind_it(events: list[Event]) -> None:
    items: list[Any] = []
    for item in whole(events)["output"]:
        items.append(item)
        if "call_id" in item:
            items.append({"type": "function_call_output", "call_id": item["call_id"], "output": "x"})
    found = messages(decode([USER, *items]).ask)
    assert the_same(replied(events), found[1])
    assert all(message.role == "tool" for message in found[2:])


@given(replies())
def test_references_stand_for_the_parts_of_the_reply(events: list[Event]) -> None:
    output = whole(events)["output"]
    ask = decode([USER, *({"type": "item_reference", "id": item["id"]} for item in output), USER]).ask
    assert [message.role for message in messages(ask)] == ["user", "assistant", "user"]
    assert {reference.at for reference in ask.references} == {1}
    calls = [reference.place for reference in ask.references if reference.part == "call"]
    assert calls == list(range(len(_calls(output))))


# -------------------------------------------------------------------------------------------------- one ask, two bodies

TEXT = st.text(max_size=5)
CALLS = st.lists(st.tuples(st.sampled_from(["look", "f"]), st.sampled_from(["{}", '{"a":1}', "x"])), max_size=2)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """The messages of a chat, and the items of the same conversation."""
    chatted: list[Any] = []
    items: list[Any] = []
    for turn in range(draw(st.integers(1, 4))):
        role, text = draw(st.sampled_from(["user", "system", "developer"])), draw(TEXT)
        chatted.append({"role": role, "content": text})
        part = {"type": "input_text", "text": text}
        items.append({"role": role, "content": draw(st.sampled_from([text, [part]]))})
        content, reasoning, calls = draw(TEXT), draw(st.none() | st.text(min_size=1, max_size=3)), draw(CALLS)
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if reasoning:
            message["reasoning_content"] = reasoning
            thought = {"type": "reasoning_text", "text": reasoning}
            items.append({"type": "reasoning", "id": "rs_1", "summary": [], "content": [thought]})
        items.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": content}]})
        if calls:
            message["tool_calls"] = []
        for place, (name, arguments) in enumerate(calls):
            id = f"c{turn}{place}"
            message["tool_calls"].append(
                {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            )
            items.append({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
        chatted.append(message)
        for place, _ in enumerate(calls):
            chatted.append({"role": "tool", "tool_call_id": f"c{turn}{place}", "content": "done"})
            output = draw(st.sampled_from(["done", [{"type": "input_text", "text": "done"}]]))
            items.append({"type": "function_call_output", "call_id": f"c{turn}{place}", "output": output})
    return chatted, items


FUNCTIONS = st.lists(st.sampled_from(["look", "f", "g"]), unique=True)


@given(conversations(), FUNCTIONS, st.none() | st.floats(0, 2), st.none() | st.integers(1, 99))
def test_chat_and_responses_are_one_ask(
    said: tuple[list[Any], list[Any]], names: list[str], temperature: float | None, limit: int | None
) -> None:
    functions = [{"name": name, "parameters": {"type": "object"}, "strict": False} for name in names]
    common: dict[str, Any] = {"model": "m", "temperature": temperature, "metadata": {"a": "b"}, "store": False}
    chatted = {
        "messages": said[0],
        "tools": [{"type": "function", "function": function} for function in functions],
        "max_completion_tokens": limit,
        "reasoning_effort": "low",
    }
    item_wise = {
        "input": said[1],
        "tools": [{"type": "function", **function} for function in functions],
        "max_output_tokens": limit,
        "reasoning": {"effort": "low"},
    }
    by_chat = chat.decode(json.dumps({**common, **chatted}).encode(), bytes).ask
    by_items = responses.decode(json.dumps({**common, **item_wise}).encode(), bytes).ask
    assert msgspec.structs.replace(by_items, protocol="chat", guide_field=by_chat.guide_field) == by_chat


def test_there_is_a_custom_tool_among_the_tools() -> None:
    assert any(tool["type"] == "custom" and tool["name"] == CUSTOM for tool in TOOLS)
