"""Reports to try things on, with a vocabulary of one's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser

import msgspec
import numpy as np

from stenograph.core import JSON, ForkReason, NoteKind, Sample, SessionFacts
from stenograph.export.sample import samples
from stenograph.inspector.report import report_html
from tests.export.trees import FACTS, call, ids, part, turn


class Words:
    """Token n is the n-th word; the last ones are markers."""

    def __init__(self, words: Sequence[str | bytes], markers: Sequence[str] = ()) -> None:
        self._words = [word.encode() if isinstance(word, str) else word for word in (*words, *markers)]
        self.control = frozenset(range(len(words), len(self._words)))

    def bytes_of(self, id: int) -> bytes:
        return self._words[id] if id < len(self._words) else b""


HOSTILE = "</script><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\"><!-- <script "
WORDS = Words(
    ["hello", " world", "\n", HOSTILE, "\u202eright to left\u0007", b" \xf0\x9f", b"\x93\xa6", b"\xff"],
    ["<|im_start|>", "<|im_end|>"],
)
UNKNOWN = 99
LOGPROBS = [-0.001, -0.5, -30.0, -0.0]


def session(facts: SessionFacts = FACTS) -> list[Sample]:
    """Two branches that share their first turn; the second one is a fork."""
    said = msgspec.structs.replace(part(4), ids=ids(3, 5, 6, 9), logprobs=np.array(LOGPROBS, np.float32))
    shared = turn(call("a", context=ids(8, 0, 1, 2, 4, 7, UNKNOWN)), 0, [said])
    older = turn(call("b", "a", context=ids(2, 8), notes=[NoteKind.PREFILL]), 0, [part(2, first=0)])
    forked = turn(call("c", "a", context=ids(1), fork=ForkReason.HISTORY_EDITED), 0, [part(1, first=0)])
    return samples(facts, [shared, older, forked])


def report(found: Sequence[Sample], title: str = "A report", facts: Mapping[str, str] | None = None) -> str:
    return report_html(found, WORDS, title=title, facts=facts or {})


class Page(HTMLParser):
    """A page as a browser's parser sees it: its elements in order, each with its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "br", "img"}:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        for tag in set(self._open):
            self.texts[tag][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def data(self) -> dict[str, JSON]:
        found: dict[str, JSON] = msgspec.json.decode(self.texts["script"][0])
        return found
