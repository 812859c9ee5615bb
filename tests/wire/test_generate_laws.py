"""JSON and SSE are one answer; and our own reader of vLLM's streams, which is tested on vLLM's, reads ours."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stenograph.core import Closed, Done, Event, Finish, Opened, Piece, Request, Sampling, VersionRun
from stenograph.engine.prompt_json import spelled
from stenograph.engine.vllm_generate import Reader
from stenograph.errors import EvidenceError
from stenograph.wire.generate_encode import GenerateEncoder, Wishes
from tests.wire.answers import answers, opened, piece
from tests.wire.test_completions_laws import payloads

WISHES = st.builds(
    Wishes,
    request_id=st.none() | st.just("mine"),
    prompt_ids=st.booleans(),
    logprobs=st.none() | st.integers(0, 3),
    usage=st.booleans(),
)


def whole(events: list[Event], wishes: Wishes) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(GenerateEncoder(wishes).json(events))
    return answer


def stream(events: list[Event], wishes: Wishes) -> bytes:
    encoder = GenerateEncoder(wishes)
    return b"".join(encoder.sse(event) for event in events)


@given(answers(), WISHES)
def test_the_stream_adds_up_to_the_json(events: list[Event], wishes: Wishes) -> None:
    expected, said = whole(events, wishes), payloads(stream(events, wishes))
    for choice in expected["choices"]:
        parts = [one for chunk in said for one in chunk["choices"] if one["index"] == choice["index"]]
        entries = [entry for part in parts if part["logprobs"] for entry in part["logprobs"]["content"]]
        assert choice["token_ids"] == [id for part in parts for id in part["token_ids"]]
        assert choice["logprobs"] == (None if wishes.logprobs is None else {"content": entries})
        assert choice["turn_id"] == parts[0]["turn_id"]
        for name in ("finish_reason", "stop_reason", "weight_versions"):
            assert choice[name] == parts[-1][name]
            assert all(part[name] is None for part in parts[:-1])
    assert {chunk["request_id"] for chunk in said} == {expected["request_id"]}
    assert said[0].get("prompt_token_ids") == expected.get("prompt_token_ids")
    assert said[-1]["usage"] == (expected["usage"] if wishes.usage else None)


@given(answers(), WISHES)
def test_the_evidence_is_of_the_ids(events: list[Event], wishes: Wishes) -> None:
    """As clients insist on it: equal counts, each entry naming its token, and the sampled one first of the best."""
    for choice in whole(events, wishes)["choices"]:
        pieces = [event for event in events if isinstance(event, Piece) and event.choice == choice["index"]]
        assert choice["token_ids"] == [id for one in pieces for id in one.ids.tolist()]
        if choice["logprobs"] is not None:
            entries = choice["logprobs"]["content"]
            assert [entry["token"] for entry in entries] == [f"token_id:{id}" for id in choice["token_ids"]]
            assert [entry["logprob"] for entry in entries] == [
                value for one in pieces for value in one.logprobs.tolist()
            ]
            for entry in entries:
                best = entry["top_logprobs"]
                assert best[0] == {name: entry[name] for name in ("token", "token_id", "logprob")}
                assert len(best) <= max(wishes.logprobs or 0, 1)
                assert [one["token_id"] for one in best].count(entry["token_id"]) == 1


def finished(events: list[Event]) -> list[Event]:
    """With versions, and ends as an engine has them."""
    counts = [sum(len(one.ids) for one in events if isinstance(one, Piece) and one.choice == at) for at in range(9)]
    return [
        Closed(event.choice, "stop", event.stop_reason, (VersionRun("v1", counts[event.choice]),))
        if isinstance(event, Closed)
        else event
        for event in events
    ]


@given(answers())
def test_a_client_of_vllm_reads_it(drawn: list[Event]) -> None:
    """Anyone who can speak to vLLM can speak to us, this house's own adapter first of all."""
    events = finished(drawn)
    begin = next(event for event in events if isinstance(event, Opened))
    request = Request("r", "s", begin.prompt, Sampling(max_tokens=2**20), n=len(begin.turn_ids))
    reader = Reader("us", request, spelled(request.prompt))
    wishes = Wishes(request_id="r", prompt_ids=True, logprobs=1, usage=True)
    deltas = [
        delta
        for payload in payloads(stream(events, wishes))
        for delta in reader.deltas(msgspec.json.decode(json.dumps(payload), type=Reader.chunk))
    ]
    for index in range(request.n):
        pieces = [event for event in events if isinstance(event, Piece) and event.choice == index]
        closed = next(event for event in events if isinstance(event, Closed) and event.choice == index)
        mine = [delta for delta in deltas if delta.choice == index]
        sampled = sum(len(one.ids) for one in pieces)
        assert [id for one in mine for id in one.ids.tolist()] == [id for one in pieces for id in one.ids.tolist()]
        assert np.array_equal(
            np.concatenate([one.logprobs for one in mine]),
            np.concatenate([np.zeros(0, np.float32), *(one.logprobs for one in pieces)]),
        )
        assert mine[-1].finish == Finish("stop", closed.stop_reason)
        assert mine[-1].versions == ((VersionRun("v1", sampled),) if sampled else ())


def test_an_error_in_mid_stream_is_never_followed_by_a_regular_end() -> None:
    encoder = GenerateEncoder(Wishes(None, False, None, False))
    cut = encoder.sse(opened()) + encoder.sse(piece(0, [1], "x")) + encoder.sse_error(EvidenceError("a logprob"))
    assert b"[DONE]" not in cut
    *_, last, rest = cut.split(b"\n\n")
    error = json.loads(last.removeprefix(b"data: "))["error"]
    assert (error["code"], error["message"], rest) == ("engine_evidence_unusable", "a logprob", b"")


def test_versions_are_spans() -> None:
    runs = (VersionRun("v1", 2), VersionRun("v2", 1))
    events: list[Event] = [opened(), piece(0, [5, 6, 7]), Closed(0, "length", None, runs), Done(2, 3)]
    (choice,) = whole(events, Wishes(None, False, None, False))["choices"]
    assert choice["weight_versions"] == [
        {"version": "v1", "start": 0, "end": 2},
        {"version": "v2", "start": 2, "end": 3},
    ]


def test_a_stream_begins_with_its_beginning() -> None:
    with pytest.raises(ValueError, match="begins with Opened"):
        GenerateEncoder(Wishes(None, False, None, False)).sse(piece(0, [1], "a"))
