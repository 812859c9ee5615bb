"""Samples as one HTML file that a person can read: no server, no request, nothing to install."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from stenograph.core import NEUTRAL, Sample
from stenograph.inspector.totals import forks_in_words, origins, totals
from stenograph.inspector.words import FORKS, NOTES

SCRIPTS = ("basics.js", "tokens.js", "rollouts.js", "tip.js", "start.js")


class Vocabulary(Protocol):
    """What the report needs of a tokenizer."""

    @property
    def control(self) -> frozenset[int]:
        """The ids that are shown as markers."""

    def bytes_of(self, id: int) -> bytes:
        """Empty where the vocabulary has no such id."""


def report_html(samples: Sequence[Sample], vocabulary: Vocabulary, *, title: str, facts: Mapping[str, str]) -> str:
    """`facts` are shown below the totals: where this is from, what was checked."""
    style, script = _file("page.css"), "\n".join(map(_file, SCRIPTS))
    slots = {
        "title": html.escape(title),
        "policy": f"default-src 'none'; img-src data:; style-src {_source(style)}; script-src {_source(script)}",
        "style": style,
        "totals": _pairs(totals(samples)),
        "facts": _pairs({**origins(samples), **facts}),
        "forks": "".join(f"<li>{html.escape(words)}</li>" for words in forks_in_words(samples)),
        "data": _data(samples, vocabulary),
        "script": script,
    }
    # One pass: what is put into a slot is never searched for slots.
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: slots[slot[1]], _file("page.html"))


def _file(name: str) -> str:
    return resources.files("stenograph.inspector").joinpath("page", name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """By this hash, the policy lets the browser run our script and no other, wherever one might come from."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _pairs(entries: Mapping[str, str]) -> str:
    return "".join(
        f"<div><dt>{html.escape(label)}</dt><dd>{html.escape(text)}</dd></div>" for label, text in entries.items()
    )


# ------------------------------------------------------------------------------------------------------------- data


def _data(samples: Sequence[Sample], vocabulary: Vocabulary) -> str:
    """CONTRACT 5's samples with their arrays packed, and each token's text once.

    What has no `<` cannot leave its script element.
    """
    ids = sorted({id for sample in samples for id in np.unique(sample.tokens).tolist()})
    body = {
        "samples": samples,
        "tokens": {id: _spelled(vocabulary.bytes_of(id)) for id in ids},
        "control": [id for id in ids if id in vocabulary.control],
        "forks": FORKS,
        "notes": NOTES,
        "neutral": NEUTRAL,
    }
    text = msgspec.json.encode(body, enc_hook=_packed).decode()
    return text.replace("<", "\\u003c")


def _spelled(token: bytes) -> str | list[int]:
    """Text; the bytes where they are not text by themselves, as in half a character."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return list(token)


def _packed(array: NDArray[Any]) -> bytes:
    """Little-endian, as every browser's typed arrays are. JSON has it in base64: a third of the digits' size."""
    return array.astype(array.dtype.newbyteorder("<")).tobytes()
