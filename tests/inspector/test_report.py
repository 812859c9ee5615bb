from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from itertools import product

import msgspec
import numpy as np
import pytest

from stenograph.core import ForkReason, NoteKind
from stenograph.export.sample import samples
from stenograph.inspector.totals import forks_in_words, origins, totals
from stenograph.inspector.words import FORKS, NOTES
from tests.export.trees import FACTS, call, part, turn
from tests.inspector.reports import HOSTILE, UNKNOWN, Page, report, session

CSS = resources.files("stenograph.inspector").joinpath("page", "page.css").read_text()


# ------------------------------------------------------------------------------------------------------ one safe file


def test_the_page_asks_nothing_of_any_network() -> None:
    page = Page(report(session()))
    links = [attrs[name] for _, attrs in page.elements for name in ("src", "href", "action") if name in attrs]
    assert links == ["data:,"]
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", report(session()))


def test_the_policy_lets_in_this_style_and_this_script_only() -> None:
    page = Page(report(session()))
    (policy,) = (attrs["content"] for attrs in page.all("meta") if attrs.get("http-equiv"))
    style, script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (page.texts["style"][0], page.texts["script"][1])
    )
    assert policy == f"default-src 'none'; img-src data:; style-src 'sha256-{style}'; script-src 'sha256-{script}'"


def test_nothing_that_is_shown_can_become_markup() -> None:
    hostile = msgspec.structs.replace(FACTS, id=HOSTILE, group=HOSTILE, metadata={HOSTILE: HOSTILE})
    plain, attacked = report(session()), report(session(hostile), title=HOSTILE, facts={HOSTILE: HOSTILE})
    names = [name for name, _ in Page(plain).elements]
    extra = ["div", "dt", "dd"]
    assert sorted(name for name, _ in Page(attacked).elements) == sorted([*names, *extra])
    assert Page(attacked).texts["title"] == [HOSTILE]
    assert Page(attacked).data["samples"][0]["metadata"] == {HOSTILE: HOSTILE}
    assert Page(attacked).data["tokens"]["3"] == HOSTILE


def test_what_is_put_into_a_slot_is_not_searched_for_slots() -> None:
    assert Page(report(session(), title="{{data}} {{script}}")).texts["title"] == ["{{data}} {{script}}"]


# ------------------------------------------------------------------------------------------------------------- data


def test_the_page_holds_the_samples_bit_for_bit() -> None:
    found = session()
    for sample, packed in zip(found, Page(report(found)).data["samples"], strict=True):
        for name in ("tokens", "sampled", "mask", "logprobs"):
            assert base64.b64decode(packed[name]) == getattr(sample, name).tobytes()
        plain = sample.to_json()
        assert {key: packed[key] for key in plain if not isinstance(packed[key], str)} == {
            key: plain[key] for key in plain if not isinstance(packed[key], str)
        }


def test_each_token_is_spelled_once_and_half_a_character_in_bytes() -> None:
    data = Page(report(session())).data
    assert data["tokens"]["0"] == "hello"
    assert (data["tokens"]["5"], data["tokens"]["6"]) == ([0x20, 0xF0, 0x9F], [0x93, 0xA6])
    assert data["tokens"][str(UNKNOWN)] == ""
    assert data["control"] == [8, 9]


def test_a_hundred_rollouts_of_two_thousand_tokens_stay_small() -> None:
    long = [turn(call("a", context=np.zeros(1000, np.int32)), 0, [part(10, first=0)] * 100)]
    hundred = [s for at in range(100) for s in samples(msgspec.structs.replace(FACTS, id=f"session-{at}"), long)]
    assert sum(len(sample.tokens) for sample in hundred) == 200_000
    assert len(report(hundred)) < 10_000_000


def test_nothing_sampled_is_a_report_too() -> None:
    assert Page(report([])).data["samples"] == []


# ----------------------------------------------------------------------------------------------------------- figures


def test_totals_count_what_branches_share_once() -> None:
    found = session(msgspec.structs.replace(FACTS, reward=-0.5))
    assert totals(found) == {
        "sessions": "1",
        "branches": "2",
        "tokens sampled": "7",
        "tokens trained": "7",
        "mean logprob": "\N{MINUS SIGN}4.414",  # (-0.001 - 0.5 - 30 - 0) + (-0.1 - 0.2) + (-0.1), over 7
        "mean reward": "\N{MINUS SIGN}0.500",
        "forks": "1",
    }
    assert forks_in_words(found) == ["1 × the agent changed an earlier message"]
    assert origins(found) == {"Model": "policy", "Engine": "scripted-0", "Weights": "v1", "Logprobs": "raw"}


def test_totals_of_nothing_invent_no_mean() -> None:
    assert (totals([])["mean logprob"], totals([])["mean reward"], origins([])) == ("–", "–", {})


def test_a_model_that_nobody_named_is_not_listed() -> None:
    unnamed, named = session()[:1], session()[1:]
    unnamed = [
        msgspec.structs.replace(s, spans=[msgspec.structs.replace(x, model="") for x in s.spans]) for s in unnamed
    ]
    assert origins([*named, *unnamed])["Model"] == origins(named)["Model"]


def test_facts_and_totals_are_on_the_page_without_the_script() -> None:
    page = Page(report(session(), facts={"Laws": "checked"}))
    assert "Laws" in page.texts["dt"]
    assert "checked" in page.texts["dd"]
    assert {"7", "\N{MINUS SIGN}4.414"} <= set(page.texts["dd"])


def test_every_reason_and_every_note_has_words() -> None:
    assert set(FORKS) == set(ForkReason)
    assert set(NOTES) == set(NoteKind)


# ----------------------------------------------------------------------------------------------------------- colours


def palette(scheme: str) -> dict[str, str]:
    light, dark = CSS.split("@media (prefers-color-scheme: dark)")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light if scheme == "light" else dark.split("\n* {")[0]))


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_readable_on_its_ground(scheme: str) -> None:
    """WCAG AA: 4.5 to 1."""
    colours = palette(scheme)
    steps = [f"p{step}" for step in range(9)]
    pairs = [
        *product(["ink"], [*steps, "page", "card", "chip"]),
        *product(["quiet"], ["page", "card", "chip"]),
        ("warn-ink", "warn"),
        ("accent", "card"),
    ]
    assert {pair for pair in pairs if contrast(colours[pair[0]], colours[pair[1]]) < 4.5} == set()


@pytest.mark.parametrize(("scheme", "direction"), [("light", -1), ("dark", 1)])
def test_the_scale_can_be_told_apart_by_lightness_alone(scheme: str, direction: int) -> None:
    colours = palette(scheme)
    steps = np.array([luminance(colours[f"p{step}"]) for step in range(9)])
    assert (np.diff(steps) * direction > 0).all()
