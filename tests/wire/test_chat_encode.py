"""What no transcript shows: answers that go wrong."""

from __future__ import annotations

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion

from stenograph.core import Closed, Done, Event
from stenograph.errors import ContextLengthExceeded, EngineUnavailable, EvidenceError
from stenograph.wire import chat
from stenograph.wire.chat_encode import ChatEncoder, Wishes
from tests.wire.answers import opened, piece, token_bytes

NOTHING = Wishes(token_ids=False, logprobs=False, usage=False, tokens_as_ids=False)
EVERYTHING = Wishes(token_ids=True, logprobs=True, usage=True, tokens_as_ids=False)


def client(status: int, body: bytes, media: str = "application/json") -> openai.OpenAI:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers={"content-type": media}, content=body)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="k", base_url="http://gateway.test/v1", http_client=http, max_retries=0)


def test_the_sdk_shows_every_token_field() -> None:
    events: list[Event] = [opened(), piece(0, [104, 105], "hi", logprobs=[-0.5, 0.0]), Closed(0, "stop"), Done(2, 2)]
    with client(200, ChatEncoder(EVERYTHING, token_bytes).json(events)) as sdk:
        reply = sdk.chat.completions.create(model="m", messages=[])
    assert isinstance(reply, ChatCompletion)
    assert (reply.model_extra or {})["prompt_token_ids"] == [1, 2]
    assert (reply.choices[0].model_extra or {})["token_ids"] == [104, 105]
    logprobs = reply.choices[0].logprobs
    assert logprobs is not None
    assert [entry.logprob for entry in logprobs.content or ()] == [-0.5, 0.0]


def test_an_error_reaches_the_caller_with_the_field_at_fault() -> None:
    body = chat.error_body(ContextLengthExceeded("too long", param="messages"))
    with client(400, body) as sdk, pytest.raises(openai.BadRequestError) as caught:
        sdk.chat.completions.create(model="m", messages=[])
    error = caught.value
    assert (error.code, error.param, error.type) == ("context_length_exceeded", "messages", "invalid_request_error")
    assert "too long" in error.message


def test_an_error_in_mid_stream_is_raised_and_never_followed_by_a_regular_end() -> None:
    encoder = ChatEncoder(NOTHING, token_bytes)
    cut = encoder.sse(opened()) + encoder.sse(piece(0, [1], "half")) + encoder.sse_error(EvidenceError("a logprob"))
    assert b"[DONE]" not in cut
    with client(200, cut, "text/event-stream") as sdk, pytest.raises(openai.APIError, match="a logprob") as caught:
        list(sdk.chat.completions.create(model="m", messages=[], stream=True))
    assert caught.value.code == "engine_evidence_unusable"


def test_an_error_may_be_all_that_a_stream_holds() -> None:
    assert ChatEncoder(NOTHING, token_bytes).sse_error(EngineUnavailable("nobody there")) == (
        b'data: {"error":{"message":"nobody there","type":"engine_error","code":"engine_unavailable","param":null}}\n\n'
    )


def test_an_answer_that_is_not_complete_is_not_given() -> None:
    with pytest.raises(ValueError, match="2 choices were opened, 1 closed"):
        ChatEncoder(NOTHING, token_bytes).json([opened(2), piece(0, [1], "a"), Closed(0, "stop"), Done(2, 1)])
    with pytest.raises(ValueError, match="not enough values"):
        ChatEncoder(NOTHING, token_bytes).json([opened(), Closed(0, "stop")])


def test_a_stream_begins_with_its_beginning() -> None:
    with pytest.raises(ValueError, match="begins with Opened"):
        ChatEncoder(NOTHING, token_bytes).sse(piece(0, [1], "a"))


def test_tops_and_ids_of_different_lengths_are_never_zipped_short() -> None:
    events: list[Event] = [opened(), piece(0, [1, 2], "a", top=((),)), Closed(0, "stop"), Done(2, 2)]
    with pytest.raises(ValueError, match="zip"):
        ChatEncoder(EVERYTHING, token_bytes).json(events)


def test_an_abort_is_said_as_vllm_says_it() -> None:
    reply = ChatEncoder(NOTHING, token_bytes).json([opened(), Closed(0, "abort"), Done(2, 0)])
    assert b'"finish_reason":"abort"' in reply
