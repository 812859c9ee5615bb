"""Prompts that no template writes: a text that is tokenized as it stands, or ids that are sent as they came."""

from __future__ import annotations

import numpy as np

from stenograph.core import Ids, Text, Tokens, Value, text_hash
from stenograph.render.coded import Coding
from stenograph.render.grammar import Grammar
from stenograph.render.literal import Literals
from stenograph.render.reply import ReplyReader
from stenograph.render.tokenizer import Tokenizer

NO_GRAMMAR = Grammar(name="plain")


class PlainContext(Value):
    """What is new in such a prompt."""

    ids: Ids
    text: str
    """As it was sent; of ids, what they spell."""

    @property
    def hash(self) -> str:
        return text_hash(self.text)


def plain_context(
    prompt: Text | Tokens, end: int, last: int | None, tokenizer: Tokenizer, literals: Literals
) -> PlainContext:
    """Of what stands behind `end` in the prompt. `last`: the id that precedes it; None: it is the beginning."""
    if isinstance(prompt, Tokens):
        ids = prompt.ids[end:]
        return PlainContext(ids, tokenizer.decode(ids.tolist()))
    text = prompt.text[end:]
    new = _from_the_beginning(text, tokenizer) if last is None else literals.encode_behind(last, text)
    return PlainContext(np.array(new, np.int32), text)


def _from_the_beginning(text: str, tokenizer: Tokenizer) -> list[int]:
    """With BOS, as engines tokenize a text, but for one that begins with it already: it was templated by the caller."""
    plain, bos = tokenizer.encode(text), tokenizer.encode("", special=True)
    return plain if plain[: len(bos)] == bos else tokenizer.encode(text, special=True)


def plain_reader(tokenizer: Tokenizer, coding: Coding, stop: tuple[str, ...]) -> ReplyReader:
    """Everything that is sampled is text."""
    return ReplyReader(NO_GRAMMAR, tokenizer, coding, thinking=False, stop=stop, schemas={}, new_call_id=lambda: "")
