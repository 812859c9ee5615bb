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

RIGHT, DECLINED, FORKED = "ours right, theirs wrong", "theirs declines", "ours declines"
CAUTIOUS = "its Qwen and GLM bridges decline every user turn; the template only rewrites those behind reasoning"
LIVE = "it encodes a message with the tokenizer's markers live: a marker in a text becomes a control token"
NAMED = "its header names the tool, where this template writes `tool`"
OPENED = "it leaves out the `<think></think>` with which this template opens a reply"
WRAPPED = "it wraps results as DeepSeek V3 does, which this template does not"
DROPPED = "the template writes no past reasoning: ours forks, it goes on with what the template would not write"
UNTHOUGHT = "the prompt opened the reasoning, and history has none of it: ours forks, it goes on all the same"
DIFFERENCES: dict[tuple[str, str], tuple[str, str]] = {
    **{("qwen3", case): (DECLINED, CAUTIOUS) for case in ("user", "user behind a cut", "user with markers")},
    **{
        ("surrogate-glm-4.6", case): (DECLINED, CAUTIOUS) for case in ("user", "user behind a cut", "user with markers")
    },
    **{(name, "result with markers"): (RIGHT, LIVE) for name in ("qwen3", "qwen3.5", "surrogate-glm-4.6")},
    ("kimi-k2", "user with markers"): (RIGHT, LIVE),
    **{("kimi-k2", case): (RIGHT, NAMED) for case in CASES if "result" in case},
    **{("deepseek-v3.1", case): (RIGHT, OPENED) for case in ("user", "user behind a cut", "user with markers")},
    **{("deepseek-v3.1", case): (RIGHT, WRAPPED) for case in ("result", "two results", "result with markers")},
    **{("deepseek-v3.1", case): (FORKED, DROPPED) for case in ("user, thinking", "result, thinking")},
    **{("surrogate-minimax-m2", case): (FORKED, UNTHOUGHT) for case in CASES if "result" in case and "," not in case},
}


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
    assert {verdict for verdict, _ in DIFFERENCES.values()} == {RIGHT, DECLINED, FORKED}
