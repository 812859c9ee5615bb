"""A tokenizer and a template that are objects in Python: anything with `encode`, `decode` and `apply_chat_template`.

transformers' fast tokenizers bring a `tokenizer.json`, and are read from that. Of the others (its slow ones, a
trainer's own) nothing is known but what they do, so they are asked: which ids are control tokens, whether a prompt
begins with BOS, and whether the template writes calls.
"""

from __future__ import annotations

import datetime
import hashlib
import inspect
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stenograph.assets.model import SPECIAL_TOKENS
from stenograph.core import JSON
from stenograph.errors import TemplateRefused
from stenograph.render.telltales import ASKED, KEYS, reply
from stenograph.render.template import Style, Template, as_template_sees
from stenograph.render.tokenizer import APART, Tokenizer, TokenStream

ANY_ID = int(np.iinfo(np.int32).max)
UNKNOWN = "\ufffd"
RARE = "°é漢🙂"
"""Characters that a vocabulary may lack."""
CONTROL_CHARACTERS = tuple(map(chr, range(32)))


class ObjectTokenizer(Tokenizer):
    def __init__(self, given: Any) -> None:
        self._given = given
        kind = type(given)
        named = f"{kind.__module__}.{kind.__qualname__}:{getattr(given, 'name_or_path', '')}"
        self.hash = hashlib.sha256(named.encode()).hexdigest()[:16]
        names = dict(_named(given))
        self._words = {id: word for word, id in names.items()}
        self.added = self.markers = names
        self.control = self.special = frozenset(names.values())
        unspelled = [word for word, id in names.items() if self._plain(word) != [id]]
        self._unspelled = re.compile("(" + "|".join(map(re.escape, unspelled)) + ")") if unspelled else None
        self._marker = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True)))) if names else None
        self._silent = {ids[0]: char for char in CONTROL_CHARACTERS if self._is_silent(ids := self._plain(char))}
        self.vocab_size = _vocab_size(given)

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        opening = list(self._given.encode("", add_special_tokens=True)) if special else []
        pieces = self._unspelled.split(text) if self._unspelled else [text]
        ids = ([self.added[piece]] if place % 2 else self._plain(piece) for place, piece in enumerate(pieces) if piece)
        return [*opening, *(id for run in ids for id in run)]

    def encode_apart(self, text: str) -> list[int]:
        pieces = APART.split(text)
        ids = ([int(piece)] if place % 2 else self._literal(piece) for place, piece in enumerate(pieces) if piece)
        return [id for run in ids for id in run]

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self._runs(ids))

    def stream(self) -> TokenStream:
        return _ObjectStream(self)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def decode_each(self, ids: Iterable[int]) -> list[str]:
        return [self.decode([id]) for id in ids]

    @property
    def pieces(self) -> dict[int, str]:
        """Of its whole vocabulary, where it tells that; else of the words that it has by name."""
        if not hasattr(self._given, "get_vocab"):
            return self._words
        return {int(id): str(piece) for piece, id in self._given.get_vocab().items()}

    @property
    def tables(self) -> dict[str, JSON]:
        """It shows none."""
        return {}

    def text_of(self, id: int) -> str:
        return self._words.get(id) or self.decode([id])

    def id_of(self, token: str) -> int | None:
        ids = self.encode(token)
        return ids[0] if len(ids) == 1 else None

    def bytes_of(self, id: int) -> bytes:
        """As far as the object can say: of half a character it has U+FFFD."""
        return self.text_of(id).encode()

    def _plain(self, text: str) -> list[int]:
        return [int(id) for id in self._given.encode(text, add_special_tokens=False)]

    def _literal(self, text: str) -> list[int]:
        """A marker in a message is cut in two, so that it is none."""
        ids = self._plain(text)
        if self._marker is None or self.control.isdisjoint(ids):
            return ids
        cuts = [0, *(found.start() + 1 for found in self._marker.finditer(text)), len(text)]
        return [id for start, end in itertools.pairwise(cuts) for id in self._plain(text[start:end])]

    def _runs(self, ids: Iterable[int]) -> Iterator[str]:
        """Some decoders leave out control characters that their encoders know; the line break is one."""
        run: list[int] = []
        for id in ids:
            if id not in self._silent:
                run.append(int(id))
                continue
            yield self._decoded(run) + self._silent[id]
            run = []
        yield self._decoded(run)

    def _decoded(self, ids: list[int]) -> str:
        if not ids:
            return ""
        exact = {"clean_up_tokenization_spaces": False} if hasattr(self._given, "clean_up_tokenization_spaces") else {}
        return str(self._given.decode(ids, skip_special_tokens=False, **exact))

    def _is_silent(self, ids: list[int]) -> bool:
        return len(ids) == 1 and ids[0] not in self.special and self._decoded(ids) == ""


class _ObjectStream(TokenStream):
    WINDOW = 8
    """Tokens that are decoded again with each new one: no character is longer."""

    def __init__(self, tokenizer: ObjectTokenizer) -> None:
        self._decode = tokenizer.decode
        self._ids: list[int] = []
        self._told = 0
        """Characters of what `_ids` spell that are out already."""

    def feed(self, id: int) -> str:
        self._ids.append(id)
        text = self._decode(self._ids)
        if text.endswith(UNKNOWN):
            return ""
        new = text[self._told :]
        self._ids = self._ids[-self.WINDOW :]
        self._told = len(self._decode(self._ids))
        return new


class ObjectTemplate(Template):
    def __init__(self, given: Any, tokenizer: ObjectTokenizer) -> None:
        self._given = given
        self.source = ""
        self.hash = tokenizer.hash
        parameters = inspect.signature(given.apply_chat_template).parameters
        self.reads = frozenset(parameters) - {"messages", "conversation", "tools", "tokenize", "add_generation_prompt"}
        self._opening = ""
        self._opening = self._bos(tokenizer)
        self._writes_calls = self._knows_calls()

    def render(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[JSON],
        arguments: Mapping[str, JSON],
        *,
        generate: bool,
        now: datetime.datetime,
    ) -> str:
        shown = list(messages) if self._writes_calls else [_with_calls_as_text(message) for message in messages]
        offered = {"tools": list(tools)} if tools else {}
        try:
            text = self._given.apply_chat_template(
                shown, tokenize=False, add_generation_prompt=generate, **offered, **arguments
            )
        except Exception as error:  # somebody else's program: it may raise anything
            detail = f"{type(error).__name__}: {error}"
            raise TemplateRefused(f"the chat template cannot render this conversation: {detail}") from error
        return self._opening + str(text)

    def _bos(self, tokenizer: ObjectTokenizer) -> str:
        """What stands before a conversation's ids, and that its text does not say: tokenizers may add it."""
        opening = tokenizer.encode("", special=True)
        told = self._given.apply_chat_template([{"role": "user", "content": "x"}], tokenize=True)
        ids = list(told["input_ids"] if isinstance(told, Mapping) else told)
        text = self._given.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)
        added = ids[: len(opening)] == opening != tokenizer.encode(str(text))[: len(opening)]
        return "".join(map(tokenizer.text_of, opening)) if added else ""

    def _knows_calls(self) -> bool:
        self._writes_calls = True
        seen = [as_template_sees(message, Style()) for message in (ASKED, reply(calls=1))]
        try:
            return KEYS[0] in self.render(seen, (), {}, generate=False, now=datetime.datetime(2000, 1, 1))
        except TemplateRefused:
            return False


def _with_calls_as_text(message: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Calls as Hermes writes them, for a template that knows no calls: what is left out, no model has seen."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    written = [f"<tool_call>\n{json.dumps(call['function'], ensure_ascii=False)}\n</tool_call>" for call in calls]
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**rest, "content": "\n".join(filter(None, [str(message.get("content") or ""), *written]))}


def _named(given: Any) -> Iterator[tuple[str, int]]:
    """The control tokens: those that the object lists, and those that it has a name for."""
    for id, token in getattr(given, "added_tokens_decoder", {}).items():
        yield str(getattr(token, "content", token)), int(id)
    for name in SPECIAL_TOKENS:
        id = getattr(given, f"{name}_id", None)
        if id is not None:
            yield named_token(given, name), int(id)


def named_token(given: Any, name: str) -> str:
    """By its id where the object knows only that."""
    return str(getattr(given, name, None) or f"<|{getattr(given, f'{name}_id')}|>")


def _vocab_size(given: Any) -> int:
    """An object that does not say takes any id; and so does one that encodes to ids beyond what it says."""
    if hasattr(given, "get_vocab"):
        size = int(max(given.get_vocab().values())) + 1
    else:
        size = len(given) if hasattr(given, "__len__") else ANY_ID
    return size if max(given.encode(RARE, add_special_tokens=False), default=0) < size else ANY_ID
