"""vLLM's own bytes, and everything that can be wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from stenograph.core import JSON, NEUTRAL, Delta, Finish, Guide, GuideKind, Sampling, TopLogprob
from stenograph.engine.http import EventLines, Refusal
from stenograph.engine.prompt_json import spelled
from stenograph.engine.scripted_wire import parse
from stenograph.engine.vllm_wire import GUIDES, SUPPORTS, Reader, body_of
from stenograph.errors import CallerError, EngineError, EvidenceError
from tests.engine.streams import finish, ids, logprobs, proven, request, stream
from tests.engine.transcripts import PROMPT, transcript

VOCABULARY = 49152


def read(pieces: Iterable[bytes], *, top: int = 0, prompt: Sequence[int] = PROMPT) -> list[Delta]:
    sent, lines = request(prompt, top=top), EventLines()
    reader = Reader("vllm-0", sent, spelled(sent.prompt))
    deltas = [delta for piece in pieces for event in lines.feed(piece) for delta in reader.read(event)]
    reader.close()
    return deltas


@pytest.mark.parametrize(
    ("name", "choice", "sampled", "end"),
    [
        ("length", 0, [7952, 5646, 11173, 30], Finish("length")),
        ("stop_id", 0, [7952, 5646], Finish("stop", 5646)),
        ("stop_string", 0, [7952, 5646], Finish("stop", "AI")),
        ("abort", 0, [12833, 6903, 98, 21073, 1699], Finish("abort")),
        ("two_choices", 0, [2143, 16398, 254, 5155], Finish("length")),
        ("two_choices", 1, [10632, 284, 2371, 564], Finish("length")),
    ],
)
async def test_a_transcript_reads_as_what_was_sampled(name: str, choice: int, sampled: list[int], end: Finish) -> None:
    top, n = (2, 2) if name == "two_choices" else (0, 1)
    deltas = read([transcript(name)], top=top)
    assert (ids(deltas, choice), finish(deltas, choice)) == (sampled, end)
    assert await proven(stream(deltas), request(PROMPT, n=n, top=top), VOCABULARY) == deltas


def test_logprobs_and_alternatives_are_vllms_own() -> None:
    first = read([transcript("two_choices")], top=2)[0]
    assert logprobs([first]) == pytest.approx([-5.015095233917236])
    assert first.top == ((TopLogprob(7952, -2.5775952339172363), TopLogprob(33011, -2.7650952339172363)),)


def test_what_vllm_had_in_its_cache_is_reported() -> None:
    deltas = read([transcript("cached")], prompt=PROMPT * 30)
    assert [delta.cached_tokens for delta in deltas][-1] == 128


def test_an_error_in_the_stream_is_a_refusal() -> None:
    with pytest.raises(Refusal, match="Token id 99999999 is out of vocabulary") as caught:
        read([transcript("foreign_id")])
    assert caught.value.status == 400


@given(st.data())
def test_however_it_arrives_it_reads_the_same(data: st.DataObject) -> None:
    sent = transcript("two_choices")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=5)))
    pieces = [sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    assert len(read(pieces, top=2)) == 9


@given(st.integers(0, len(transcript("stop_id")) - len(b"\n\n") - 1))
def test_cut_anywhere_it_is_refused(end: int) -> None:
    with pytest.raises(EvidenceError):
        read([transcript("stop_id")[:end]])


def broken(**changes: Any) -> bytes:
    """One event, right in everything but the changes."""
    inner = {name: changes.pop(name) for name in ("tokens", "token_logprobs", "top_logprobs") if name in changes}
    alone = {"token_logprobs": [-1.0], "tokens": ["token_id:5"], "top_logprobs": [{"token_id:5": -1.0}]} | inner
    choice = {"index": 0, "logprobs": alone, "prompt_token_ids": PROMPT, "token_ids": [5], "finish_reason": "stop"}
    return b"data: " + msgspec.json.encode({"choices": [choice | changes]}) + b"\n\n"


END = b"data: [DONE]\n\n"


@pytest.mark.parametrize("written", [b"", b" "])
def test_one_right_event_passes(written: bytes) -> None:
    """Also where the ids are not written as they were sent."""
    event = broken().replace(b",9690,", b"," + written + b"9690,")
    assert ids(read([event, END], top=1)) == [5]


@pytest.mark.parametrize("later", [None, ...])
def test_the_prompt_is_echoed_with_each_choice_or_once(later: Any) -> None:
    """Both choices have one prompt."""
    choices = [msgspec.json.decode(broken(index=index)[6:])["choices"][0] for index in range(2)]
    if later is None:
        choices[1]["prompt_token_ids"] = None
    else:
        del choices[1]["prompt_token_ids"]
    event = b"data: " + msgspec.json.encode({"choices": choices}) + b"\n"
    assert [one.choice for one in read([event, END], top=1)] == [0, 1]


def test_every_choices_echo_is_compared() -> None:
    right, wrong = broken(), broken(index=1, prompt_token_ids=[*PROMPT, 5])
    both = right.strip()[:-2] + b"," + wrong.partition(b"[")[2]
    with pytest.raises(EvidenceError, match="does not confirm the prompt"):
        read([both, END], top=1)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (broken(logprobs=None), "logprobs: missing"),
        (broken(token_logprobs=[None]), "its logprob is missing"),
        (broken(token_logprobs=[]), "1 token ids came with 0 logprobs"),
        (broken(token_logprobs=[-1.0, -1.0]), "1 token ids came with 2 logprobs"),
        (broken(token_logprobs=[0.5]), "positive"),
        (broken(token_logprobs=[-9999.0]), "sentinel"),
        (broken(token_logprobs=["-1"]), "cannot be read.*token_logprobs"),
        (broken(token_logprobs=[msgspec.Raw(b"NaN")]), "cannot be read"),
        (broken(token_logprobs=[msgspec.Raw(b"-1e999")]), "cannot be read"),
        (broken(token_ids=None), "token ids: missing"),
        (broken(token_ids=[5, 6]), "other tokens than the ids"),
        (broken(token_ids=[]), "0 token ids came with 1 logprobs"),
        (broken(token_ids=[5.0]), "cannot be read.*token_ids"),
        (broken(token_ids=[True]), "cannot be read.*token_ids"),
        (broken(tokens=["token_id:6"]), "other tokens than the ids"),
        (broken(tokens=["AI"]), "other tokens than the ids"),
        (broken(top_logprobs=[None]), "top logprobs of token 0: missing"),
        (broken(top_logprobs=[]), "1 token ids came with 0 rows"),
        (broken(top_logprobs=[{"AI": -1.0}]), "does not name the alternatives by their ids"),
        (broken(top_logprobs=[{"token_id:5": 0.5}]), "positive"),
        (broken(prompt_token_ids=None), "does not confirm the prompt"),
        (broken(prompt_token_ids=PROMPT[1:]), "does not confirm the prompt"),
        (broken(index="0"), "cannot be read.*index"),
        (b'data: {"choices": [{"index": 0, "tok\n\n', "cannot be read"),
        (b"data: <html>\n\n", "cannot be read"),
        (b'data: {"choices": 5}\n\n', "cannot be read"),
    ],
)
def test_unusable_evidence_is_refused(event: bytes, words: str) -> None:
    with pytest.raises(EvidenceError, match=words):
        read([event, END], top=1)


@pytest.mark.parametrize("counts", [(6, 2), (6, 0), (5, 1)])
def test_vllms_own_count_has_to_agree(counts: tuple[int, int]) -> None:
    usage = {"choices": [], "usage": dict(zip(("prompt_tokens", "completion_tokens"), counts, strict=True))}
    with pytest.raises(EvidenceError, match="sent were 6, received 1"):
        read([broken(), b"data: " + msgspec.json.encode(usage) + b"\n\n", END])


@pytest.mark.parametrize("reason", ["error", "repetition", "tool_calls"])
def test_an_end_that_is_none_is_an_error(reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        read([broken(finish_reason=reason), END])


def test_alternatives_without_a_chance_are_left_out() -> None:
    """With `--logprobs-mode processed_logprobs`, where top-k left them out."""
    row = {"token_id:5": -1.0, "token_id:6": -9999.0}
    assert read([broken(top_logprobs=[row]), END], top=2)[0].top == ((TopLogprob(5, -1.0),),)


def test_every_parameter_is_written_out() -> None:
    sampling = Sampling(max_tokens=9, logit_bias={7: 1.5})
    sampled_from = request([5, 6], n=2, top=3, max_tokens=9, logit_bias={7: 1.5})
    body = msgspec.json.decode(body_of(sampled_from, "policy", spelled(sampled_from.prompt)))
    sent = {name: body[name] for name in SUPPORTS}
    assert {"guide": None, **sent} == msgspec.json.decode(msgspec.json.encode(sampling))
    asked = {"model": "policy", "prompt": [5, 6], "n": 2, "logprobs": 3, "request_id": "r1", "session_id": "session"}
    assert body.items() >= asked.items()
    assert {*SUPPORTS, "guide"} == set(NEUTRAL.__struct_fields__)


@pytest.mark.parametrize("changed", [{"temperature": 0.001}, {"logit_bias": {5: 101.0}}, {"seed": -1}])
def test_what_vllm_would_alter_in_silence_is_refused(changed: dict[str, Any]) -> None:
    asked = request(**changed)
    with pytest.raises(CallerError) as caught:
        body_of(asked, "policy", spelled(asked.prompt))
    assert caught.value.param in changed


HELD: dict[GuideKind, tuple[JSON, dict[str, JSON]]] = {
    "json": ({"type": "array"}, {"json": {"type": "array"}}),
    "object": (None, {"json_object": True}),
    "regex": ("a+", {"regex": "a+"}),
    "choice": (["yes", "no"], {"choice": ["yes", "no"]}),
    "grammar": ('root ::= "a"', {"grammar": 'root ::= "a"'}),
    "tag": ({"type": "structural_tag"}, {"structural_tag": '{"type":"structural_tag"}'}),
}


@pytest.mark.parametrize("kind", sorted(GUIDES))
def test_a_guide_is_sent_in_its_words_and_read_back_by_the_scripted_engine(kind: GuideKind) -> None:
    value, words = HELD[kind]
    asked = request(guide=Guide(kind, value))
    body = body_of(asked, "policy", spelled(asked.prompt))
    assert msgspec.json.decode(body)["structured_outputs"] == words
    assert parse(body, 1024)[1].sampling.guide == asked.sampling.guide
