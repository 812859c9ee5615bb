"""SGLang's own bytes (release 0.5.23, SmolLM2), and what is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from stenograph.core import JSON, Delta, Finish, Guide, GuideKind, TopLogprob, VersionRun
from stenograph.engine.http import EventLines, Refusal
from stenograph.engine.sglang_wire import GUIDES, SUPPORTS, Offers, Reader, body_of, scores_of
from stenograph.errors import CallerError, EngineError, EvidenceError
from tests.engine.streams import finish, ids, logprobs, proven, request, stream

FOLDER = Path(__file__).resolve().parents[1] / "transcripts" / "sglang"
PROMPT = [1, 9690, 198, 2683, 359, 253]
VOCABULARY = 49152


def events(name: str) -> list[bytes]:
    return list(EventLines().feed((FOLDER / f"{name}.sse").read_bytes()))


def read(pieces: Iterable[bytes], **asked: Any) -> list[Delta]:
    reader = Reader("sglang-0", request(PROMPT, **asked), 0)
    deltas = [delta for event in pieces for delta in reader.read(event)]
    reader.close()
    return deltas


def incremental(pieces: list[bytes]) -> list[bytes]:
    """The same answer as a server streams it that does not repeat itself."""
    told, seen = [], 0
    for piece in pieces[:-1]:
        chunk = msgspec.json.decode(piece)
        meta = chunk["meta_info"]
        chunk["output_ids"] = chunk["output_ids"][seen:]
        for name in ("output_token_logprobs", "output_top_logprobs"):
            if name in meta:
                meta[name] = meta[name][seen:]
        seen = meta["completion_tokens"]
        told.append(msgspec.json.encode(chunk))
    return [*told, pieces[-1]]


@pytest.mark.parametrize(
    ("name", "asked", "count", "end"),
    [
        ("length", {"top": 2, "max_tokens": 4}, 4, Finish("length")),
        ("interval", {"max_tokens": 5}, 5, Finish("length")),
        ("stop_id", {"stop_token_ids": (359, 30, 2)}, 4, Finish("stop", 30)),
        ("eos", {}, 1, Finish("stop")),
        ("stop_string", {"stop": ("here",)}, 7, Finish("stop", "here")),
    ],
)
async def test_a_transcript_reads_as_what_was_sampled(
    name: str, asked: dict[str, Any], count: int, end: Finish
) -> None:
    sent = request(PROMPT, **asked)
    deltas = read(events(name), **asked)
    whole = msgspec.json.decode(events(name)[-2])
    assert (ids(deltas), finish(deltas)) == (whole["output_ids"], end)
    assert len(ids(deltas)) == count
    assert logprobs(deltas) == pytest.approx([entry[0] for entry in whole["meta_info"]["output_token_logprobs"]])
    assert await proven(stream(deltas), sent, VOCABULARY) == deltas
    again = read(incremental(events(name)), **asked)
    assert [msgspec.to_builtins(one, enc_hook=np.ndarray.tolist) for one in again] == [
        msgspec.to_builtins(one, enc_hook=np.ndarray.tolist) for one in deltas
    ]


def test_alternatives_are_sglangs_own() -> None:
    first = read(events("length"), top=2)[0]
    assert first.top is not None
    best = msgspec.json.decode(events("length")[0])["meta_info"]["output_top_logprobs"][0]
    assert first.top[0] == tuple(TopLogprob(id, logprob) for logprob, id, _ in best)


def with_alternatives(*rows: Any) -> list[bytes]:
    *before, last, done = events("length")
    chunk = msgspec.json.decode(last)
    told = chunk["meta_info"]["output_top_logprobs"]
    chunk["meta_info"]["output_top_logprobs"] = [*told[: len(told) - len(rows)], *rows]
    return [*before, msgspec.json.encode(chunk), done]


@pytest.mark.parametrize("nothing", [None, -3.4028234663852886e38, -9999.0])
def test_what_a_guide_left_out_is_no_alternative(nothing: float | None) -> None:
    """SGLang says the lowest float32 of it, and a writer of JSON that knows no infinity says null."""
    last = read(with_alternatives([[-0.5, 30, None], [nothing, 7, None]]), top=2)[-1]
    assert last.top == ((TopLogprob(30, -0.5),),)


@pytest.mark.parametrize(
    "row", [None, [[-0.5]], [[-0.5, [30], None]], [[-0.5, "30", None]], [["-0.5", 30, None]], [[[], 30, None]], [[]]]
)
def test_alternatives_that_are_none_are_refused(row: Any) -> None:
    with pytest.raises(EvidenceError):
        read(with_alternatives(row), top=2)


def versioned(*spans: tuple[str, int, int]) -> list[bytes]:
    *before, last, done = events("length")
    chunk = msgspec.json.decode(last)
    chunk["meta_info"]["weight_versions"] = [{"version": name, "start": low, "end": high} for name, low, high in spans]
    return [*before, msgspec.json.encode(chunk), done]


def test_versions_are_told_at_the_end() -> None:
    deltas = read(versioned(("3", 0, 1), ("4", 1, 4)), top=2)
    assert deltas[-1].versions == (VersionRun("3", 1), VersionRun("4", 3))


def test_weights_that_nobody_gave_a_version_have_none() -> None:
    assert [one.versions for one in read(events("length"), top=2)] == [()] * 4
    assert read(versioned(("default", 0, 2), ("4", 2, 4)), top=2)[-1].versions == (VersionRun("4", 2),)


@pytest.mark.parametrize(("name", "words"), [("too_long", "exceeds the maximum allowed"), ("refused", "top_p must be")])
def test_what_sglang_refuses_is_a_refusal(name: str, words: str) -> None:
    with pytest.raises(Refusal, match=words) as caught:
        read(events(name))
    assert caught.value.status == 400


def altered(**changes: Any) -> list[bytes]:
    """The last chunk of `eos`, with something else in it."""
    first, done = events("eos")
    chunk = msgspec.json.decode(first)
    for name, value in changes.items():
        (chunk if name in ("output_ids", "meta_info") else chunk["meta_info"])[name] = value
    return [msgspec.json.encode(chunk), done]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"output_ids": [3]}, "logprobs are of other tokens"),
        ({"output_ids": [2, 2]}, "counts 1 tokens"),
        ({"output_token_logprobs": []}, "counts 1 tokens"),
        ({"output_token_logprobs": [[0.5, 2, None]]}, "positive"),
        ({"output_token_logprobs": [[None, 2, None]]}, "missing"),
        ({"output_token_logprobs": [[]]}, "other tokens"),
        ({"completion_tokens": 2}, "counts 2 tokens"),
        ({"prompt_tokens": 7}, "read 7 tokens of a prompt of 6"),
        ({"meta_info": None}, "without its `meta_info`"),
        ({"finish_reason": {"type": "stop", "matched": "NaN happened"}}, "NaN happened"),
        ({"finish_reason": {"type": "bored"}}, "'bored'"),
    ],
)
def test_what_cannot_be_trusted_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(EngineError, match=words):
        read(altered(**changes))


def test_a_wrong_count_does_not_turn_a_repetition_into_news() -> None:
    """Three were out, four come, and seven are counted: as news they would fit, but this server repeats itself."""
    *before, last, done = events("length")
    chunk = msgspec.json.decode(last)
    chunk["meta_info"]["completion_tokens"] = 7
    with pytest.raises(EvidenceError, match="counts 7 tokens, 3 were there and 4 token ids came"):
        read([*before, msgspec.json.encode(chunk), done], top=2)


def aborted(output_ids: Sequence[int] = (), **told: Any) -> bytes:
    meta = {"finish_reason": {"type": "abort", "message": "Abort in waiting queue"}, **told}
    return msgspec.json.encode({"text": None, "output_ids": output_ids, "meta_info": meta})


@pytest.mark.parametrize("prompt", [{}, {"prompt_tokens": 0}, {"prompt_tokens": 6}])
def test_an_abort_out_of_the_queue_is_an_abort(prompt: dict[str, Any]) -> None:
    deltas = read([aborted(completion_tokens=0, **prompt), events("eos")[-1]])
    assert (ids(deltas), finish(deltas)) == ([], Finish("abort"))


@pytest.mark.parametrize("repeated", [0, 1, 4])
def test_an_abort_of_what_was_retracted_has_no_new_token(repeated: int) -> None:
    """All that was sampled is out. An incremental server repeats the last token, any other all of them."""
    *before, last, done = incremental(events("length"))
    chunk = msgspec.json.decode(last)
    chunk["meta_info"]["finish_reason"] = None
    whole = msgspec.json.decode(events("length")[-2])
    told = {
        "completion_tokens": 4,
        "output_ids": whole["output_ids"][4 - repeated :],
        "output_token_logprobs": whole["meta_info"]["output_token_logprobs"][4 - repeated :],
        "output_top_logprobs": whole["meta_info"]["output_top_logprobs"][4 - repeated :],
    }
    deltas = read([*before, msgspec.json.encode(chunk), aborted(**told), done], top=2)
    assert (ids(deltas), finish(deltas)) == (whole["output_ids"], Finish("abort"))


def test_an_answer_without_its_end_is_refused() -> None:
    with pytest.raises(EvidenceError, match="before it was complete"):
        read(events("length")[:-1], top=2)


def sent(choice: int = 0, /, **changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(body_of(request(PROMPT, **changes), choice, "r1-0", 16, Offers()))
    return body


def test_every_parameter_is_neutral_unless_it_was_asked_for() -> None:
    assert sent()["sampling_params"] == {
        "max_new_tokens": 8,
        "min_new_tokens": 0,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "stop": [],
        "stop_token_ids": [],
        "ignore_eos": False,
        "logit_bias": None,
        "sampling_seed": None,
        "stream_interval": 16,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "no_stop_trim": True,
        "n": 1,
    }


CHANGED: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 7,
    "min_p": 0.1,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "repetition_penalty": 1.2,
    "max_tokens": 2,
    "min_tokens": 1,
    "stop": ("x",),
    "stop_token_ids": (5,),
    "ignore_eos": True,
    "logit_bias": {5: -1.0},
}


@pytest.mark.parametrize("name", sorted(SUPPORTS))
def test_what_is_supported_is_sent(name: str) -> None:
    assert sent(**{name: CHANGED[name]}) != sent()


@pytest.mark.parametrize(
    ("asked", "param"),
    [({"temperature": 1e-7}, "temperature"), ({"ignore_eos": True, "stop_token_ids": (5,)}, "ignore_eos")],
)
def test_what_sglang_would_alter_silently_is_refused(asked: dict[str, Any], param: str) -> None:
    with pytest.raises(CallerError) as caught:
        sent(**asked)
    assert caught.value.param == param


SCORE = {
    "meta_info": {
        "input_token_logprobs": [[None, 1, None], [-7.5, 9690, None], [-0.5, 198, None]],
        "input_top_logprobs": [None, [[-0.75, 29, None], [-2.0, 28, None]], [[-0.5, 198, None], [-2.0, 30, None]]],
    }
}


def test_scores_are_aligned() -> None:
    scored = scores_of("sglang-0", [1, 9690, 198], 2, 1, msgspec.json.encode(SCORE))
    assert np.allclose(scored.logprobs, [-7.5, -0.5])
    assert scored.top_ids[0].tolist() == [29, 28]


@pytest.mark.parametrize(("sent_ids", "top_k"), [([1, 9690], 2), ([1, 9690, 199], 2), ([1, 9690, 198], 3)])
def test_scores_of_something_else_are_refused(sent_ids: list[int], top_k: int) -> None:
    with pytest.raises(EvidenceError):
        scores_of("sglang-0", sent_ids, top_k, 1, msgspec.json.encode(SCORE))


HELD: dict[GuideKind, tuple[JSON, str, str]] = {
    "json": ({"type": "array"}, "json_schema", '{"type":"array"}'),
    "object": (None, "json_schema", '{"type":"object"}'),
    "regex": ("a+", "regex", "a+"),
    "choice": (["yes", "no"], "ebnf", 'root ::= "yes" | "no"'),
    "grammar": ('root ::= "a"', "ebnf", 'root ::= "a"'),
    "tag": ({"type": "structural_tag"}, "structural_tag", '{"type":"structural_tag"}'),
}


@pytest.mark.parametrize("kind", sorted(GUIDES))
def test_a_guide_is_sent_in_its_words(kind: GuideKind) -> None:
    value, name, text = HELD[kind]
    assert sent(guide=Guide(kind, value))["sampling_params"] == sent()["sampling_params"] | {name: text}
