"""Where PyPI's `renderers` has a bridge of its own, ours gives the same ids. The differences are listed here, each with
the side that the template agrees with, and why."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.conftest import REVIEWED
from tests.render.agreement import CASES, FAMILIES, bridged

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("renderers") is None or importlib.util.find_spec("transformers") is None,
    reason=f"renderers and transformers are not among the development set: 300 MB for one comparison {REVIEWED}",
)

CAUTIOUS = "its Qwen and GLM bridges decline every user turn; the template only rewrites those behind reasoning"
PARSED = "it encodes a message with the tokenizer's markers live: a marker in a text becomes a control token"
NAMED = "its header names the tool where this template writes `tool`"
UNDECIDED = "it leaves out the `</think>` with which this template opens a reply that does not think"
WRAPPED = "it wraps results and opens a reply as DeepSeek V3 does; V3.1's template writes neither"
DROPPED = "the template drops the reasoning of this reply; it keeps it and goes on"
DIFFERENCES: dict[tuple[str, str], tuple[str, str]] = {}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("family", FAMILIES)
def test_both_give_the_same_ids_but_where_listed(
    shared_tokenizers: dict[str, Path], family: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    verdict = bridged(shared_tokenizers[family], case).verdict
    listed = DIFFERENCES.get((family, case))
    assert verdict == listed[0] if listed else verdict in ("same", "both decline")


def test_wherever_the_two_differ_ours_is_right_or_forks() -> None:
    assert {verdict for verdict, _ in DIFFERENCES.values()} <= {
        "ours right, theirs wrong",
        "theirs declines",
        "ours declines",
    }
