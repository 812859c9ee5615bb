"""A choice as a grammar, for engines that have no other word for it: EBNF as xgrammar and llama.cpp both read it."""

from __future__ import annotations

import json
from collections.abc import Sequence


def alternatives(texts: Sequence[str]) -> str:
    return "root ::= " + " | ".join(json.dumps(text, ensure_ascii=False) for text in texts)
