"""docs/EXACTNESS.md is held to the code: every reason, every note, and every cell that is measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stenograph.core import ForkReason, NoteKind
from tests.render.test_habits import renderer_at
from tests.render.test_probe import probed
from tools import exactness

PAGE = exactness.PAGE.read_text()


@pytest.mark.parametrize(("title", "kinds"), [("Forks", ForkReason), ("Notes", NoteKind)])
def test_every_reason_and_every_note_is_explained(title: str, kinds: type[ForkReason] | type[NoteKind]) -> None:
    [section] = (part for part in PAGE.split("\n## ") if part.startswith(title))
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [kind.value for kind in kinds]


def test_the_tables_are_what_the_templates_do(shared_tokenizers: dict[str, Path]) -> None:
    """Where this fails: `python -m tools.exactness`, and read what has changed."""
    renderers = {name: renderer_at(folder) for name, folder in shared_tokenizers.items()}
    probes = {name: probed(folder) for name, folder in shared_tokenizers.items()}
    assert exactness.written(PAGE, exactness.tables(renderers, probes)) == PAGE


def test_a_template_that_counts_is_not_called_proven(shared_tokenizers: dict[str, Path]) -> None:
    renderer = renderer_at(shared_tokenizers["kimi-k2-thinking"])
    assert exactness.certified(renderer, "result") == "in full"
