"""A stream and a JSON answer say the same, as OpenAI's own SDK reads them; every id rides exactly once, in order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from stenograph.core import Event, Opened, Piece
from stenograph.wire import sse
from stenograph.wire.chat_encode import ChatEncoder, Wishes
from tests.wire.answers import answers, token_bytes

WISHES = st.builds(
    Wishes, token_ids=st.booleans(), logprobs=st.booleans(), usage=st.booleans(), tokens_as_ids=st.booleans()
)


def frames(events: list[Event], wishes: Wishes) -> bytes:
    encoder = ChatEncoder(wishes, token_bytes)
    return b"".join(encoder.sse(event) for event in events)


def chunks(stream: bytes) -> list[dict[str, Any]]:
    *payloads, done, rest = stream.split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    return [json.loads(payload.removeprefix(b"data: ")) for payload in payloads]


def choices_of(stream: bytes, index: int) -> list[dict[str, Any]]:
    return [choice for chunk in chunks(stream) for choice in chunk["choices"] if choice["index"] == index]


def through_the_sdk(stream: bytes, cuts: list[int]) -> ChatCompletion:
    """What `client.chat.completions.create(stream=True)` accumulates from a response that is cut anywhere."""

    def parts() -> Iterator[bytes]:
        places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
        for start, end in itertools.pairwise(places):
            yield stream[start:end]

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=parts())

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    state = ChatCompletionStreamState()
    with openai.OpenAI(api_key="k", base_url="http://gateway.test/v1", http_client=http) as client:
        for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
            ChatCompletionChunk.model_validate(chunk.to_dict())
            state.handle_chunk(chunk)
    return state.current_completion_snapshot


def said(completion: ChatCompletion) -> dict[str, Any]:
    """All that both forms carry. The SDK does not add up fields of ours (`token_ids`): those have laws of their own."""
    extra = completion.model_extra or {}
    return {
        "head": (completion.id, completion.created, completion.model, completion.object),
        "prompt_token_ids": extra.get("prompt_token_ids"),
        "choices": [
            {
                "index": choice.index,
                "turn_id": (choice.model_extra or {})["turn_id"],
                "role": choice.message.role,
                "content": choice.message.content,
                "reasoning": (choice.message.model_extra or {}).get("reasoning_content"),
                "calls": [
                    (call.id, call.type, call.function.name, call.function.arguments)
                    for call in choice.message.tool_calls or ()
                    if call.type == "function"
                ],
                "logprobs": choice.logprobs and [entry.to_dict() for entry in choice.logprobs.content or ()],
                "finish_reason": choice.finish_reason,
            }
            for choice in completion.choices
        ],
    }


@given(answers(), WISHES, st.lists(st.integers(0, 10**6), max_size=5))
def test_the_stream_adds_up_to_the_json(events: list[Event], wishes: Wishes, cuts: list[int]) -> None:
    whole = ChatCompletion.model_validate_json(ChatEncoder(wishes, token_bytes).json(events))
    streamed = through_the_sdk(frames(events, wishes), cuts)

    expected, found = said(whole), said(streamed)
    for choice in expected["choices"]:
        choice["logprobs"] = choice["logprobs"] or None  # a stream says that there are logprobs with the first token
    assert found == expected
    assert streamed.usage == (whole.usage if wishes.usage else None)


@given(answers(), st.booleans(), st.booleans())
def test_every_id_rides_exactly_once_and_in_order(events: list[Event], logprobs: bool, token_ids: bool) -> None:
    wishes = Wishes(token_ids=token_ids, logprobs=logprobs, usage=False, tokens_as_ids=False)
    whole = json.loads(ChatEncoder(wishes, token_bytes).json(events))
    stream = frames(events, wishes)
    for index, choice in enumerate(whole["choices"]):
        pieces = [event for event in events if isinstance(event, Piece) and event.choice == index]
        sampled = [id for piece in pieces for id in piece.ids.tolist()]
        reported = [logprob for piece in pieces for logprob in piece.logprobs.tolist()]
        seen = choices_of(stream, index)
        if token_ids:
            assert choice["token_ids"] == [id for part in seen for id in part.get("token_ids", [])] == sampled
        else:
            assert "token_ids" not in choice
            assert all("token_ids" not in part for part in seen)
        if logprobs:
            entries = [entry for part in seen if part["logprobs"] for entry in part["logprobs"]["content"]]
            assert choice["logprobs"]["content"] == entries
            assert [(entry["token_id"], entry["logprob"]) for entry in entries] == list(
                zip(sampled, reported, strict=True)
            )
        else:
            assert choice["logprobs"] is None
            assert all(part["logprobs"] is None for part in seen)


@given(answers(), WISHES)
def test_prompt_ids_and_turn_ids_ride_on_the_first_chunk_of_each_choice(events: list[Event], wishes: Wishes) -> None:
    opening = next(event for event in events if isinstance(event, Opened))
    found = chunks(frames(events, wishes))
    for index, turn_id in enumerate(opening.turn_ids):
        first, *later = [chunk for chunk in found if any(choice["index"] == index for choice in chunk["choices"])]
        assert first["choices"][0]["turn_id"] == turn_id
        assert first["choices"][0]["delta"] == {"role": "assistant"}
        assert first.get("prompt_token_ids") == (opening.prompt.tolist() if wishes.token_ids else None)
        assert all("prompt_token_ids" not in chunk and "turn_id" not in chunk["choices"][0] for chunk in later)


@given(answers(), WISHES)
def test_no_chunk_is_empty(events: list[Event], wishes: Wishes) -> None:
    for chunk in chunks(frames(events, wishes)):
        for choice in chunk["choices"]:
            assert choice["delta"] or choice["finish_reason"] or choice.get("token_ids") or choice["logprobs"]


@given(answers(), WISHES)
def test_each_event_is_whole_frames(events: list[Event], wishes: Wishes) -> None:
    """So a keep-alive may stand between any two."""
    encoder = ChatEncoder(wishes, token_bytes)
    parts = [encoder.sse(event) for event in events]
    assert all(part == b"" or part.endswith(b"\n\n") for part in parts)
    kept_alive = through_the_sdk(sse.KEEP_ALIVE.join([b"", *parts, b""]), [])
    assert said(kept_alive) == said(through_the_sdk(b"".join(parts), []))
