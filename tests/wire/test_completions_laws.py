"""JSON and SSE are one answer: whatever the events, openai's own parser of the stream gives what the JSON says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types import Completion

from stenograph.core import Closed, Event, Opened, Piece
from stenograph.errors import EvidenceError
from stenograph.wire import sse
from stenograph.wire.completions_encode import CompletionsEncoder, Wishes
from tests.wire.answers import answers, opened, piece, token_bytes

WISHES = st.builds(
    Wishes,
    echo=st.text(max_size=3),
    token_ids=st.booleans(),
    logprobs=st.none() | st.integers(0, 2),
    usage=st.booleans(),
    tokens_as_ids=st.booleans(),
)
SAID = answers().map(lambda events: [_without_calls(event) for event in events])
COLUMNS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


def _without_calls(event: Event) -> Event:
    """Here a reply is text, whatever it reads like."""
    return Closed(event.choice, "stop", event.stop_reason) if isinstance(event, Closed) else event


def frames(events: list[Event], wishes: Wishes) -> list[bytes]:
    encoder = CompletionsEncoder(wishes, token_bytes)
    return [encoder.sse(event) for event in events]


def through_the_sdk(stream: bytes, cuts: list[int]) -> list[Completion]:
    """What `client.completions.create(stream=True)` yields from a response that is cut anywhere."""
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})

    def answer(_: httpx2.Request) -> httpx2.Response:
        parts = (stream[start:end] for start, end in itertools.pairwise(places))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=parts)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    with openai.OpenAI(api_key="k", base_url="http://gateway.test/v1", http_client=http) as client:
        chunks = list(client.completions.create(model="m", prompt="", stream=True))
    for chunk in chunks:
        for choice in chunk.choices:
            choice.finish_reason = choice.finish_reason or "stop"  # the SDK's type has no null, and OpenAI sends it
        Completion.model_validate(chunk.to_dict())
    return chunks


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """A choice of all that a stream says of it."""
    last, columns = parts[-1], [part["logprobs"] for part in parts if part["logprobs"]]
    whole: dict[str, Any] = {"index": last["index"], "text": "".join(part["text"] for part in parts)}
    whole["finish_reason"], whole["stop_reason"] = last["finish_reason"], last["stop_reason"]
    for name in ("turn_id", "prompt_token_ids"):
        whole |= {name: parts[0][name]} if name in parts[0] else {}
        assert all(name not in part for part in parts[1:])
    if any("token_ids" in part for part in parts):
        whole["token_ids"] = [id for part in parts for id in part.get("token_ids", ())]
    whole["logprobs"] = (
        {name: [entry for one in columns for entry in one[name]] for name in COLUMNS} if columns else None
    )
    return whole


def payloads(stream: bytes) -> list[dict[str, Any]]:
    *found, done, rest = stream.split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    return [json.loads(payload.removeprefix(b"data: ")) for payload in found]


@given(SAID, WISHES, st.lists(st.integers(0, 10**6), max_size=5))
def test_the_stream_adds_up_to_the_json(events: list[Event], wishes: Wishes, cuts: list[int]) -> None:
    whole = json.loads(CompletionsEncoder(wishes, token_bytes).json(events))
    stream = b"".join(frames(events, wishes))
    said = payloads(stream)
    for expected in whole["choices"]:
        found = joined(
            [choice for chunk in said for choice in chunk["choices"] if choice["index"] == expected["index"]]
        )
        nothing = {"logprobs": {name: [] for name in COLUMNS}, "token_ids": []}
        assert {**nothing, **found, "logprobs": found["logprobs"] or expected["logprobs"]} == {**nothing, **expected}
    assert all((chunk["id"], chunk["model"]) == (whole["id"], whole["model"]) for chunk in said)
    assert said[-1].get("usage") == (whole["usage"] if wishes.usage else None)
    chunks = through_the_sdk(stream, cuts)
    texts = ["".join(choice.text for chunk in chunks for choice in chunk.choices if choice.index == index)
             for index in range(len(whole["choices"]))]  # fmt: skip
    assert texts == [choice["text"] for choice in whole["choices"]]


@given(SAID, WISHES)
def test_every_id_and_logprob_is_there_once(events: list[Event], wishes: Wishes) -> None:
    whole = Completion.model_validate_json(CompletionsEncoder(wishes, token_bytes).json(events))
    prompt = next(event for event in events if isinstance(event, Opened)).prompt.tolist()
    for choice in whole.choices:
        pieces = [event for event in events if isinstance(event, Piece) and event.choice == choice.index]
        ids = [id for one in pieces for id in one.ids.tolist()]
        extra = choice.model_extra or {}
        assert (extra.get("token_ids"), extra.get("prompt_token_ids")) == (
            (ids, prompt) if wishes.token_ids else (None, None)
        )
        assert choice.text == wishes.echo + "".join(one.content for one in pieces)
        assert (choice.logprobs is None) == (wishes.logprobs is None)
        if choice.logprobs is not None:
            assert choice.logprobs.token_logprobs == [value for one in pieces for value in one.logprobs.tolist()]
            assert {len(getattr(choice.logprobs, name)) for name in COLUMNS} == {len(ids)}
            rows = zip(choice.logprobs.tokens or (), choice.logprobs.top_logprobs or (), strict=True)
            assert all(next(iter(row)) == token for token, row in rows)


@given(SAID, WISHES)
def test_each_event_is_whole_frames(events: list[Event], wishes: Wishes) -> None:
    parts = frames(events, wishes)
    assert all(part == b"" or part.endswith(b"\n\n") for part in parts)
    kept_alive = through_the_sdk(sse.KEEP_ALIVE.join([b"", *parts, b""]), [])
    assert kept_alive == through_the_sdk(b"".join(parts), [])


def test_offsets_are_where_a_token_begins_in_the_text() -> None:
    spelling: Callable[[int], bytes] = {1: b"na", 2: b"\xc3", 3: b"\xaf", 4: b"ve"}.__getitem__
    wishes = Wishes(echo="", token_ids=False, logprobs=0, usage=False, tokens_as_ids=False)
    encoder = CompletionsEncoder(wishes, spelling)
    encoder.sse(opened())
    stream = [encoder.sse(piece(0, ids, "text")) for ids in ([1, 2], [3], [4])]
    told: Iterator[Any] = (json.loads(frame.removeprefix(b"data: ")) for frame in stream)
    assert [one["choices"][0]["logprobs"]["text_offset"] for one in told] == [[0, 2], [3], [3]]


def test_an_error_in_mid_stream_is_raised_and_never_followed_by_a_regular_end() -> None:
    encoder = CompletionsEncoder(Wishes("", False, None, False, False), token_bytes)
    cut = encoder.sse(opened()) + encoder.sse(piece(0, [1], "half")) + encoder.sse_error(EvidenceError("a logprob"))
    assert b"[DONE]" not in cut
    with pytest.raises(openai.APIError, match="a logprob") as caught:
        through_the_sdk(cut, [])
    assert caught.value.code == "engine_evidence_unusable"


def test_a_stream_begins_with_its_beginning() -> None:
    with pytest.raises(ValueError, match="begins with Opened"):
        CompletionsEncoder(Wishes("", False, None, False, False), token_bytes).sse(piece(0, [1], "a"))
