"""Whether two tokenizers say the same: a teacher that reads other pieces behind the same ids scores another text.

Tables and behaviour both count. Every id that the student has must name the same piece, and every text must become the
same ids. Where all tables of the two are equal, that is proven; where they are not, a panel of texts decides: each
piece of either vocabulary as text, pairs of them, each added token among its neighbours, and what normalizers and
pre-tokenizers are known to treat differently. What no id and no text can show is no difference: names, padding,
truncation, which tokens are called special, how ids are turned back into text, and a BOS that is only put before a
whole prompt.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from stenograph.core import JSON
from stenograph.render.tokenizer import Tokenizer

SHOWN = 3
"""Differences that are named: enough to see of which kind they are."""
AT_A_TIME = 4096
"""Texts: the plain ones show most differences, and the others are not even made then."""
PAIRS = 20_000
"""Random pairs of pieces: what is merged across their border depends on the order of merges."""
TABLES = ("normalizer", "pre_tokenizer", "model")
UNSEEN = ("special",)
"""Of an added token: nothing that changes how text is cut."""
PANEL = (
    *("Hello, world!", " hello  world ", "\tTab\r\nand\n\n\nlines  \n", "don't we'll I'M", "CamelCase snake_case"),
    *("1", "12", "123", "1234567890", "3.14159", "1,000,000", "0x1F", "x=1;y=2", "\u0663\u0664", "\u00bd\u00b2"),
    *("\u00e9t\u00e9", "e\u0301te\u0301", "\ufb01n", "\uff26\uff55\uff4c\uff4c", "\u00df SS \u017f", "\u0130i"),
    *("A\u030a \u00c5 \u212b", "\u00a0nbsp\u2003em", "a\u0300\u0301\u0302", "\u2026\u2014\u201c\u201d", "\ufeffbom"),
    *(
        "\u4e2d\u6587\u5b57\u7b26",
        "\u3053\u3093\u306b\u3061\u306f",
        "\uc548\ub155",
        "\u1112\u1161\u11ab",
        "\u0928\u092e",
    ),
    *("\u0645\u0631\u062d\u0628\u0627", "\u05e9\u05dc\u05d5\u05dd", "\u0e2a\u0e27\u0e31", "\U0001f642\u200d\U0001f467"),
    *("\x00\x07", "\u200bzero", "\u2581underline", "  four    spaces", "        eight", "\U0001f1e9\U0001f1ea"),
    *(
        "def f(x):\n    return {'a': [1, 2]}\n",
        "<html> &amp; </html>",
        "https://example.org/?q=a%20b",
        "$x^2$ \\frac{1}",
    ),
)


def differences(student: Tokenizer, teacher: Tokenizer) -> list[str]:
    """The first few, in words; none where the two are alike."""
    if student.hash == teacher.hash:
        return []
    found = [*itertools.islice(_other_pieces(student, teacher), SHOWN)]
    if not found and not _equal_tables(student, teacher):
        found = [*itertools.islice(_other_ids(student, teacher), SHOWN)]
    return found


def _other_pieces(student: Tokenizer, teacher: Tokenizer) -> Iterator[str]:
    ours, theirs = student.pieces, teacher.pieces
    for id in sorted(ours):
        if ours[id] != theirs.get(id):
            yield f"id {id} is {ours[id]!r} to the student and {theirs.get(id, 'nothing')!r} to the teacher"
    for piece, id in sorted(teacher.added.items(), key=lambda one: one[1]):
        if id not in ours:
            yield f"{piece!r} is id {id} to the teacher and {student.encode(piece)} to the student"


def _equal_tables(student: Tokenizer, teacher: Tokenizer) -> bool:
    ours, theirs = student.tables, teacher.tables
    if not ours or not theirs:
        return False
    return all(ours[name] == theirs[name] for name in TABLES) and _added(ours) == _added(theirs)


def _added(tables: JSON) -> list[JSON]:
    return [{name: flag for name, flag in token.items() if name not in UNSEEN} for token in tables["added_tokens"]]


def _other_ids(student: Tokenizer, teacher: Tokenizer) -> Iterator[str]:
    left = panel(student, teacher)
    while texts := [*itertools.islice(left, AT_A_TIME)]:
        for text, ours, theirs in zip(texts, student.encode_all(texts), teacher.encode_all(texts), strict=True):
            if ours != theirs:
                yield f"{text!r} is {_spelt(student, ours)} to the student and {_spelt(teacher, theirs)} to the teacher"


def _spelt(tokenizer: Tokenizer, ids: list[int]) -> str:
    return " ".join(f"{tokenizer.text_of(id)!r}={id}" for id in ids)


def panel(student: Tokenizer, teacher: Tokenizer) -> Iterator[str]:
    """The plainest first, so that what is shown is easily read. A piece that only the teacher has is a merge more, and
    no pair drawn by chance may spell it."""
    yield from PANEL
    yield from teacher.decode_each(sorted(teacher.pieces.keys() - student.pieces.keys()))
    for token in student.added | teacher.added:
        yield from (f"a{token}b", f"a {token} b", f"A\n{token}\nB", token.upper(), f"{token}{token}")
    pieces = student.decode_each(sorted(student.pieces))
    yield from pieces
    dice = random.Random(0)
    yield from (dice.choice(pieces) + dice.choice(pieces) for _ in range(PAIRS))
