"""The report in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest

from tests.export.trees import FACTS
from tests.inspector.reports import HOSTILE, LOGPROBS, Page, report, session

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=2000",
    "--dump-dom",
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

Browse: TypeAlias = Callable[..., Page]


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    """Opens a report, runs a script in it as a user's hands would, and returns the page as it is then."""

    def open_page(text: str, hands: str = "", anchor: str = "") -> Page:
        file = tmp_path / "report.html"
        file.write_text(with_hands(text, hands))
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", f"{file.as_uri()}{anchor}"]
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        return Page(run.stdout)

    return open_page


def with_hands(text: str, hands: str) -> str:
    """The policy lets no second script in: only a page that is acted upon goes without it."""
    if not hands:
        return text
    return re.sub("<meta http-equiv[^>]*>", "", text).replace("</body>", f"<script>{hands}</script></body>")


def tokens(page: Page, *classes: str) -> list[dict[str, str | None]]:
    spans = (attrs for attrs in page.all("span") if "data-at" in attrs)
    return [attrs for attrs in spans if set(classes) <= set((attrs["class"] or "").split())]


def marks(page: Page) -> list[str | None]:
    return [attrs["data-shown"] for attrs in page.all("span") if "data-shown" in attrs]


def test_a_rollout_opens_token_by_token(browse: Browse) -> None:
    older, main = session()
    page = browse(report([older, main]), anchor="#s%3Ac")
    shown = tokens(page)
    assert len([attrs for attrs in page.all("details") if "open" in attrs]) == 1
    assert [int(attrs["data-at"] or "") for attrs in shown] == list(range(len(main.tokens)))
    assert len(tokens(page, "trained")) == main.mask.sum()
    assert len(tokens(page, "context")) == len(main.tokens) - main.sampled.sum()
    assert len(tokens(page, "control")) == 2
    steps = [re.findall(r"\bp(\d)\b", attrs["class"] or "") for attrs in shown]
    assert [step for found in steps for step in found] == ["0", "3", "8", "0", "1"]


def test_a_turn_that_another_branch_trains_is_not_underlined(browse: Browse) -> None:
    older, main = session()
    page = browse(report([older, main]), anchor="#s%3Ab")
    assert len(tokens(page, "trained")) == older.mask.sum() == 2
    assert len(tokens(page)) == len(older.tokens)


def test_hostile_text_is_text(browse: Browse) -> None:
    hostile = msgspec.structs.replace(FACTS, id=HOSTILE, group=HOSTILE, metadata={HOSTILE: HOSTILE})
    page = browse(report(session(hostile), title="Safe"))
    assert page.texts["title"] == ["Safe"]
    assert len(page.all("script")) == 2
    assert page.all("img") == []
    assert HOSTILE in page.texts["h2"]
    assert HOSTILE in page.texts["span"]
    drawn = "".join(page.texts["main"])
    assert not set("\u202e\u0007") & set(drawn)
    assert {"U+202E", "U+0007"} <= set(marks(page))


def test_what_is_no_text_is_shown_as_what_it_is(browse: Browse) -> None:
    page = browse(report(session()))
    assert {"id 99", "FF", "↵", "·"} <= set(marks(page))
    assert " 📦" in page.texts["span"]


def test_a_token_says_what_it_is_on_hover(browse: Browse) -> None:
    hands = "document.querySelector('.token.p3').dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
    page = browse(report(session()), hands, anchor="#s%3Ac")
    facts = dict(zip(page.texts["dt"], page.texts["dd"], strict=True))
    assert facts["id"] == "5"
    assert facts["bytes"] == "20 F0 9F"
    assert facts["logprob"] == f"\N{MINUS SIGN}{-LOGPROBS[1]:.6f} (raw)"
    assert facts["probability"] == "60.65%"
    assert facts["turn"] == "1, token 2 of 4"
    assert facts["trained"] == "yes"


def test_arrow_keys_walk_from_token_to_token(browse: Browse) -> None:
    hands = """
    const first = document.querySelector(".token[data-at='6']");
    first.focus();
    for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft"])
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    document.title = document.activeElement.dataset.at;
    """
    page = browse(report(session()), hands, anchor="#s%3Ac")
    assert page.texts["title"] == ["7"]
    stops = [attrs["data-at"] for attrs in tokens(page) if attrs["tabindex"] == "0"]
    assert stops == ["0", "7", "11", "12"]
    assert [attrs["aria-describedby"] for attrs in tokens(page) if "aria-describedby" in attrs] == ["tip"]
