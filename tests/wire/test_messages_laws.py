"""A stream and a JSON answer say the same, as Anthropic's own SDK reads them; what an agent sends back of either is
what was said; and a conversation is the same by whatever protocol it came."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import anthropic
import httpx2
import msgspec
from anthropic.types import Message as Answer
from hypothesis import given
from hypothesis import strategies as st

from stenograph.core import JSON, CallDelta, Closed, Conversation, Done, Event, FinishReason, Message, Piece, ToolCall
from stenograph.session.canonical import canonicals
from stenograph.wire import chat, messages
from stenograph.wire.messages_blocks import Thinking
from stenograph.wire.messages_encode import MessagesEncoder
from tests.wire.answers import opened, piece, token_bytes

TEXTS = st.text(st.sampled_from('ab {"\\\n\x07é😀') | st.characters(codec="utf-8"), max_size=5)
"""Often with what JSON escapes."""
SOME = TEXTS.filter(bool)
VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(TEXTS, VALUES, max_size=3)
NAMES = st.sampled_from(("look", "listen"))
SHOWING: st.SearchStrategy[Thinking] = st.sampled_from(("shown", "omitted", "hidden"))
DECODE_LOOSELY = json.JSONDecoder(strict=False).decode


@st.composite
def written(draw: st.DrawFn) -> str:
    """Arguments as models write them: in JSON, but for line breaks inside of strings, which they leave as they are."""
    text = json.dumps(draw(ARGUMENTS), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from((None, 2))))
    loose = "\\\\" not in text and draw(st.booleans())
    return text.replace("\\n", "\n").replace("\\u0007", "\x07") if loose else text


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=3))})
    return [text[start:end] for start, end in pairwise(places)]


@st.composite
def pieces(draw: st.DrawFn) -> list[Piece]:
    """Thoughts, texts and calls, in any order."""
    said: list[Piece] = []
    calls = 0
    for kind in draw(st.lists(st.sampled_from(("thought", "text", "call", "nothing")), max_size=8)):
        if kind == "thought":
            said.append(piece(0, [1], reasoning=draw(SOME)))
        elif kind == "text":
            said.append(piece(0, [1, 2], draw(SOME)))
        elif kind == "nothing":
            said.append(piece(0, [3]))
        else:
            first, *rest = [*draw(cut(draw(written()))), ""]
            said.append(piece(0, [4], calls=[CallDelta(calls, f"call{calls}", draw(NAMES), first)]))
            said.extend(piece(0, [5], calls=[CallDelta(calls, arguments=more)]) for more in rest)
            calls += 1
    return said


@st.composite
def answers(draw: st.DrawFn) -> list[Event]:
    said = draw(pieces())
    reason: FinishReason = draw(st.sampled_from(("stop", "length", "tool_calls")))
    stop = draw(st.none() | st.integers(0, 9) | st.text(max_size=3))
    cached = draw(st.none() | st.integers(0, 2))
    return [opened(), *said, Closed(0, reason, stop), Done(2, sum(len(one.ids) for one in said), cached)]


def frames(events: list[Event], thinking: Thinking, idle: bool = False) -> bytes:
    encoder = MessagesEncoder(thinking)
    return b"".join(encoder.sse(event) + (encoder.sse_idle() if idle else b"") for event in events)


def sdk(answer: Callable[[], httpx2.Response]) -> anthropic.Anthropic:
    transport = httpx2.MockTransport(lambda _: answer())
    http = httpx2.Client(transport=transport)
    return anthropic.Anthropic(api_key="k", base_url="http://gateway.test", http_client=http, max_retries=0)


def streamed(stream: bytes, cuts: list[int]) -> Answer:
    """What the SDK accumulates from a response that is cut anywhere."""

    def parts() -> Iterator[bytes]:
        places = sorted({0, len(stream), *(place % (len(stream) + 1) for place in cuts)})
        for start, end in pairwise(places):
            yield stream[start:end]

    def answer() -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=parts())

    with sdk(answer) as client, client.messages.stream(model="m", max_tokens=1, messages=[]) as events:
        return events.get_final_message()


def plain(answer: Answer) -> dict[str, Any]:
    """What was answered, without what the SDK adds."""
    said: dict[str, Any] = answer.to_dict(exclude_none=True)
    for block in said["content"]:
        block.pop("parsed_output", None)
    return said


@given(answers(), SHOWING, st.lists(st.integers(0, 10**6), max_size=5), st.booleans())
def test_the_stream_adds_up_to_the_json(events: list[Event], thinking: Thinking, cuts: list[int], idle: bool) -> None:
    whole = Answer.model_validate_json(MessagesEncoder(thinking).json(events))
    assert plain(streamed(frames(events, thinking, idle), cuts)) == plain(whole)


BLOCK = r"content_block_start (content_block_delta )*content_block_stop "
IN_ORDER = re.compile(rf"message_start ({BLOCK})*message_delta message_stop ")


@given(answers(), SHOWING)
def test_events_come_in_the_documented_order(events: list[Event], thinking: Thinking) -> None:
    found = []
    for frame in frames(events, thinking).split(b"\n\n")[:-1]:
        name, data = frame.split(b"\n")
        payload = json.loads(data.removeprefix(b"data: "))
        assert name == b"event: " + payload["type"].encode()
        found.append(payload)
    assert IN_ORDER.fullmatch("".join(f"{event['type']} " for event in found))
    starts = [event["index"] for event in found if event["type"] == "content_block_start"]
    assert starts == list(range(len(starts)))
    open_block = -1
    for event in found:
        open_block += event["type"] == "content_block_start"
        assert event.get("index", open_block) == open_block
        assert event.get("delta", {}).get("partial_json") != ""


@given(answers(), SHOWING)
def test_all_that_was_said_is_answered_in_its_order(events: list[Event], thinking: Thinking) -> None:
    content = json.loads(MessagesEncoder(thinking).json(events))["content"]
    reply = said(events)
    assert "".join(block["text"] for block in content if block["type"] == "text") == (reply.content or "")
    calls = [(block["id"], block["name"], block["input"]) for block in content if block["type"] == "tool_use"]
    assert calls == [(call.id, call.name, call.arguments) for call in reply.tool_calls]
    shown = "".join(block["thinking"] for block in content if block["type"] == "thinking")
    assert shown == ((reply.reasoning or "") if thinking == "shown" else "")
    assert thinking != "hidden" or all(block["type"] != "thinking" for block in content)


# ------------------------------------------------------------------------------------------------------ there and back


def said(events: list[Event]) -> Message:
    """As the record has it."""
    sampled = [event for event in events if isinstance(event, Piece)]
    deltas = [delta for event in sampled for delta in event.calls]
    texts = {delta.index: "" for delta in deltas}
    for delta in deltas:
        texts[delta.index] += delta.arguments
    calls = [
        ToolCall(delta.id, delta.name or "", DECODE_LOOSELY(texts[delta.index]), texts[delta.index])
        for delta in deltas
        if delta.id is not None
    ]
    return Message(
        "assistant",
        "".join(event.content for event in sampled),
        "".join(event.reasoning for event in sampled) or None,
        tuple(calls),
    )


def sent_back(content: list[JSON]) -> Message:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": content}]}
    prompt = messages.decode(json.dumps(body).encode(), token_bytes).ask.prompt
    assert isinstance(prompt, Conversation)
    return prompt.messages[1]


def reordered(block: JSON) -> JSON:
    return {**block, "input": dict(reversed(block["input"].items()))} if block["type"] == "tool_use" else block


@given(answers(), SHOWING, st.booleans())
def test_a_reply_that_comes_back_is_the_one_that_was_given(
    events: list[Event], thinking: Thinking, stripped: bool
) -> None:
    """Whole, or without its thinking, and with arguments in another order: as the tree matches it, it is the same."""
    answer = Answer.model_validate_json(MessagesEncoder(thinking).json(events))
    content = [reordered(block.to_dict()) for block in answer.content]
    kept = [block for block in content if not (stripped and block["type"] == "thinking")]
    ours, theirs = said(events), sent_back(kept)
    assert canonicals([theirs]) == canonicals([ours])
    visible = ours.reasoning if thinking != "hidden" and not stripped else None
    assert theirs.reasoning == visible


# -------------------------------------------------------------------------------------- one conversation, two protocols


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[JSON], dict[str, JSON]]:
    """The same one as chat has it, and as Messages has it."""
    system = draw(st.none() | TEXTS)
    chatted: list[JSON] = [] if system is None else [{"role": "system", "content": system}]
    blocks: list[JSON] = []
    ids: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        heard = [(id, draw(st.lists(TEXTS, min_size=1, max_size=2))) for id in ids]
        texts = draw(st.lists(TEXTS, min_size=0 if heard else 1, max_size=2))
        chatted += [{"role": "tool", "tool_call_id": id, "content": _parts(parts)} for id, parts in heard]
        chatted += [{"role": "user", "content": _parts(texts)}] if texts else []
        results = [{"type": "tool_result", "tool_use_id": id, "content": _parts(parts)} for id, parts in heard]
        blocks.append({"role": "user", "content": [*results, *_parts(texts)]})
        thought, text, calls = draw(st.none() | SOME), draw(TEXTS), draw(st.lists(ARGUMENTS, max_size=2))
        ids = [f"call{len(blocks)}{place}" for place in range(len(calls))]
        functions = [
            {"id": id, "type": "function", "function": {"name": "look", "arguments": given}}
            for id, given in zip(ids, calls, strict=True)
        ]
        chatted.append({"role": "assistant", "content": text, "reasoning": thought, "tool_calls": functions})
        used = [
            {"type": "tool_use", "id": id, "name": "look", "input": given} for id, given in zip(ids, calls, strict=True)
        ]
        thinking = [] if thought is None else [{"type": "thinking", "thinking": thought, "signature": "theirs"}]
        blocks.append({"role": "assistant", "content": [*thinking, {"type": "text", "text": text}, *used]})
    last: JSON = {"role": "user", "content": "Go on"}
    return [*chatted, last], {"messages": [*blocks, last]} | ({} if system is None else {"system": system})


def _parts(texts: list[str]) -> list[JSON]:
    return [{"type": "text", "text": text} for text in texts]


@given(conversations(), st.booleans())
def test_a_conversation_is_the_same_ask_as_over_chat(both: tuple[list[JSON], dict[str, JSON]], tools: bool) -> None:
    chatted, blocks = both
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    function = {"name": "look", "description": "looks", "parameters": schema}
    by_chat: dict[str, JSON] = {"tools": [{"type": "function", "function": function}]} if tools else {}
    by_blocks: dict[str, JSON] = {"tools": [_renamed(function)]} if tools else {}
    common: dict[str, JSON] = {"model": "m", "max_tokens": 7, "temperature": 0.5, "metadata": {"user_id": "u"}}
    one = chat.decode(msgspec.json.encode({**common, "messages": chatted, "stop": ["x"], **by_chat}), token_bytes)
    other = messages.decode(
        msgspec.json.encode({**common, **blocks, "stop_sequences": ["x"], **by_blocks}), token_bytes
    )
    assert msgspec.structs.replace(other.ask, protocol="chat") == one.ask


def _renamed(function: dict[str, JSON]) -> dict[str, JSON]:
    return {{"parameters": "input_schema"}.get(name, name): value for name, value in function.items()}
