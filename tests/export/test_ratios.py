"""Of which spans a trainer can form ratios, and that it is told of the others."""

from __future__ import annotations

import msgspec
import pytest

from stenograph.core import JSON, LogprobKind, Sampling, Span
from stenograph.export.ratios import Ratios, flaw
from stenograph.export.sample import samples
from tests.export.trees import FACTS, call, turn

BARE = Sampling(max_tokens=9)
(SAMPLE,) = samples(FACTS, [turn(msgspec.structs.replace(call("a"), sampling=BARE))])
SPAN = SAMPLE.spans[0]


def span(kind: LogprobKind, **sampling: JSON) -> Span:
    return msgspec.structs.replace(SPAN, logprob_kind=kind, sampling={**SPAN.sampling, **sampling})


KINDS: tuple[LogprobKind, ...] = ("raw", "temperature", "processed")


@pytest.mark.parametrize("recorded", KINDS)
@pytest.mark.parametrize("wanted", ["raw", "temperature"])
def test_at_temperature_1_all_kinds_are_one(recorded: LogprobKind, wanted: LogprobKind) -> None:
    assert flaw(span(recorded), wanted) is None


@pytest.mark.parametrize(
    ("recorded", "wanted", "said"),
    [
        ("temperature", "temperature", None),
        ("processed", "temperature", None),
        ("raw", "temperature", "have raw logprobs, at temperature 0.7"),
        ("temperature", "raw", "have logprobs after temperature, at temperature 0.7"),
        ("raw", "raw", "were sampled at temperature 0.7"),
    ],
)
def test_at_another_temperature_they_are_not(recorded: LogprobKind, wanted: LogprobKind, said: str | None) -> None:
    assert flaw(span(recorded, temperature=0.7), wanted) == said


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        ({"temperature": 0}, "greedily"),
        ({"top_p": 0.9}, "truncated"),
        ({"top_k": 5}, "truncated"),
        ({"min_p": 0.1}, "truncated"),
        ({"repetition_penalty": 1.1}, "penalty"),
        ({"presence_penalty": -0.1}, "penalty"),
        ({"frequency_penalty": 0.1}, "penalty"),
        ({"logit_bias": {"7": 1.0}}, "bias"),
    ],
)
def test_what_no_trainer_repeats_is_said(sampling: dict[str, JSON], said: str) -> None:
    assert said in (flaw(span("temperature", **sampling), "temperature") or "")


def test_a_guide_is_said() -> None:
    assert "guide" in (flaw(msgspec.structs.replace(SPAN, constrained=True), "temperature") or "")


def test_what_is_trained_is_counted_and_goes_by_as_it_is() -> None:
    warm = msgspec.structs.replace(SAMPLE, spans=(span("raw", temperature=0.7), span("raw"), span("raw", top_p=0.5)))
    untrained = msgspec.structs.replace(
        SAMPLE, spans=(msgspec.structs.replace(span("raw", temperature=0), trained=False),)
    )
    ratios = Ratios("verl", "temperature")
    assert list(ratios.watched([warm, untrained])) == [warm, untrained]
    assert list(ratios.said()) == [
        "verl forms ratios with logprobs after temperature, and 1 of 3 spans have raw logprobs, at temperature 0.7",
        "verl forms ratios with logprobs after temperature, and 1 of 3 spans "
        "were sampled from a truncated distribution (top_p, top_k, min_p)",
    ]


def test_who_forms_no_ratios_is_told_nothing() -> None:
    ratios = Ratios("jsonl", None)
    assert list(ratios.watched([SAMPLE])) == [SAMPLE]
    assert list(ratios.said()) == []
