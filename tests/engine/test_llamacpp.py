"""llama.cpp's own bytes (release b11549, SmolLM2), and everything that can be wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from stenograph.core import JSON, NEUTRAL, Delta, Finish, Guide, GuideKind, Request, TopLogprob
from stenograph.engine.http import EventLines, Refusal
from stenograph.engine.llamacpp import GUIDES, SUPPORTS, body_of, chunk_of, delta_of
from stenograph.errors import CallerError, EngineError, EvidenceError
from tests.engine.streams import finish, ids, logprobs, proven, request, stream

FOLDER = Path(__file__).resolve().parents[1] / "transcripts" / "llamacpp"
PROMPT = (9690, 198, 2683)
VOCABULARY = 49152


def transcript(name: str) -> bytes:
    return (FOLDER / f"{name}.sse").read_bytes()


def read(events: Iterator[bytes], asked: Request) -> list[Delta]:
    deltas, seen = [], 0
    for chunk in map(chunk_of, events):
        seen += len(chunk.tokens)
        deltas.append(delta_of(chunk, asked, 0, seen, chunk.finish))
    return deltas


def events(name: str) -> Iterator[bytes]:
    return EventLines().feed(transcript(name))


def event(**changes: Any) -> bytes:
    """The first event of `length`, with something else in it."""
    return msgspec.json.encode(msgspec.json.decode(next(events("length"))) | changes)


@pytest.mark.parametrize(
    ("name", "sampled", "end"),
    [
        ("length", [416, 722, 260, 2179, 3391, 80, 4814, 288], Finish("length")),
        ("eos", [2], Finish("stop")),
        ("half", [10813] * 3, Finish("length")),
    ],
)
async def test_a_transcript_reads_as_what_was_sampled(name: str, sampled: list[int], end: Finish) -> None:
    asked = request(PROMPT)
    deltas = read(events(name), asked)
    assert (ids(deltas), finish(deltas)) == (sampled, end)
    assert await proven(stream(deltas), asked, VOCABULARY) == deltas


def test_logprobs_and_alternatives_are_llamacpps_own() -> None:
    first = msgspec.json.decode(next(events("length")))["completion_probabilities"][0]
    delta = read(events("length"), request(PROMPT, top=2))[0]
    assert logprobs([delta]) == pytest.approx([first["logprob"]])
    assert delta.top == (tuple(TopLogprob(one["id"], one["logprob"]) for one in first["top_logprobs"]),)


def test_what_was_in_the_cache_is_reported() -> None:
    assert [delta.cached_tokens for delta in read(events("eos"), request(PROMPT))] == [2, 2]


def test_a_token_that_was_withheld_is_missed() -> None:
    """As a server answers whose vocabulary has text: of three tokens of an emoji it reports one."""
    with pytest.raises(EvidenceError, match="sampled 3 tokens and reported 1"):
        read(events("gap"), request(range(49)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tokens_predicted": 2}, "sampled 2 tokens and reported 1"),
        ({"tokens_evaluated": 2}, "read 2 tokens of a prompt of 3"),
        ({"tokens_evaluated": None}, "read None tokens"),
        ({"tokens": [417]}, "probabilities are of other tokens"),
        ({"completion_probabilities": []}, "probabilities are of other tokens"),
        ({"completion_probabilities": [{"id": 416, "logprob": None}]}, "missing"),
        ({"completion_probabilities": [{"id": 416, "logprob": 0.5}]}, "positive"),
        ({"completion_probabilities": [{"id": 416, "logprob": "-1"}]}, "no number"),
        ({"completion_probabilities": [{"id": 416, "logprob": -3.4028234663852886e38}]}, "probability 0"),
        ({"tokens": None}, "not as expected"),
        ({"stop": True, "stop_type": "word"}, "not known here: 'word'"),
    ],
)
def test_what_cannot_be_trusted_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(EvidenceError, match=said):
        read(iter([event(**changes)]), request(PROMPT))


def test_what_is_no_json_is_the_engines_fault() -> None:
    with pytest.raises(EngineError, match="not JSON"):
        chunk_of(b'{"tokens": [1')


def test_an_error_in_the_stream_is_a_refusal() -> None:
    with pytest.raises(Refusal, match="Compute error") as caught:
        chunk_of(b'{"error": {"code": 500, "message": "Compute error.", "type": "server_error"}}')
    assert caught.value.status == 500


def sent(choice: int = 0, /, **changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(body_of(request(PROMPT, **changes), choice, context=4096))
    return body


def test_every_sampler_is_neutral_unless_it_was_asked_for() -> None:
    assert sent() == {
        "prompt": list(PROMPT),
        "n_predict": 8,
        "stream": True,
        "return_tokens": True,
        "n_probs": 1,
        "post_sampling_probs": False,
        "timings_per_token": True,
        "cache_prompt": True,
        "samplers": ["penalties", "temperature", "min_p", "top_k", "top_p"],
        "temperature": 1.0,
        "dynatemp_range": 0.0,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
        "min_keep": 0,
        "repeat_penalty": 1.0,
        "repeat_last_n": 4096,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "mirostat": 0,
        "seed": -1,
        "ignore_eos": False,
        "logit_bias": [],
    }


CHANGED: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 7,
    "min_p": 0.1,
    "repetition_penalty": 1.2,
    "seed": 3,
    "max_tokens": 2,
    "ignore_eos": True,
    "logit_bias": {5: -1.0},
}


@pytest.mark.parametrize("name", sorted(SUPPORTS - {"stop", "stop_token_ids"}))
def test_what_is_supported_is_sent(name: str) -> None:
    assert name in NEUTRAL.__struct_fields__
    assert sent(**{name: CHANGED[name]}) != sent()


@pytest.mark.parametrize("seed", [0, 3, -1, 2**32 - 1, 2**64])
def test_choices_of_one_seed_are_not_alike(seed: int) -> None:
    seeds = [sent(choice, seed=seed)["seed"] for choice in range(3)]
    assert len(set(seeds)) == 3
    assert all(0 <= one < 2**32 - 1 for one in seeds)


HELD: list[tuple[Guide, str, JSON]] = [
    (Guide("json", {"type": "array"}), "json_schema", {"type": "array"}),
    (Guide("object"), "json_schema", {"type": "object"}),
    (Guide("choice", ["yes", 'a "no"']), "grammar", r'root ::= "yes" | "a \"no\""'),
    (Guide("grammar", 'root ::= "a"'), "grammar", 'root ::= "a"'),
]


@pytest.mark.parametrize(("guide", "name", "value"), HELD)
def test_a_guide_is_sent_in_its_words(guide: Guide, name: str, value: JSON) -> None:
    assert sent(guide=guide) == sent() | {name: value}
    assert guide.kind in GUIDES


@pytest.mark.parametrize("kind", sorted(set(get_args(GuideKind)) - GUIDES))
def test_a_guide_that_it_does_not_know_is_refused(kind: GuideKind) -> None:
    with pytest.raises(CallerError, match=kind):
        sent(guide=Guide(kind, "x"))
