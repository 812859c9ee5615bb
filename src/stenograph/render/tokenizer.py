"""A tokenizer as this house needs it: exact both ways, and able to say where text is text.

Two encoders stand over one vocabulary. `encode` is the ordinary one: markers such as `<|im_end|>` become control ids.
`encode_literal` takes text in which the template's own markers were set apart (see `literal.py`), so that the same
characters in a user's message become ordinary ids.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Sequence

import tokenizers
from tokenizers.decoders import DecodeStream

from stenograph.core import JSON

WORD_SPACE = "\u2581"
"""SentencePiece's letter for a space."""
_NONCE = secrets.token_hex(8)
"""Part of every renamed marker, so that no text from outside can spell one."""
APART = re.compile(f"\ufdd2{_NONCE}\\.([0-9]+)\ufdd3")
"""A renamed marker, with its id."""


class Tokenizer:
    def __init__(self, spec: str, named: Iterable[str] = ()) -> None:
        """`spec` is the text of a `tokenizer.json`. `named`: what its config calls `eos_token` and so on, which is
        special whatever the file says (fine-tunes add their `<|im_end|>` as an ordinary token)."""
        self._spec = spec
        self._inner = tokenizers.Tokenizer.from_str(spec)
        self._inner.no_padding()
        self._inner.no_truncation()
        self.hash = hashlib.sha256(spec.encode()).hexdigest()[:16]
        added = self._inner.get_added_tokens_decoder()
        self.added: dict[str, int] = {token.content: id for id, token in added.items()}
        """Every token that the tokenizer cuts out of text before it looks at words: special ones and others."""
        self.markers = {word: id for word, id in self.added.items() if word.strip(f"{WORD_SPACE} \n\t\r")}
        """Those of them that are more than white space (gemma's are many runs of it)."""
        self.control: frozenset[int] = frozenset(added)
        named = frozenset(named)
        self.special: frozenset[int] = frozenset(
            id for id, token in added.items() if token.special or token.content in named
        )
        self.vocab_size: int = max(self._inner.get_vocab(with_added_tokens=True).values()) + 1
        """One above the highest id (which `len(tokenizer)` of transformers may not be)."""

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Without adding BOS or anything else, as a template writes its own; with it where `special`."""
        ids: list[int] = self._inner.encode(text, add_special_tokens=special).ids
        return ids

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Of many texts at once, in parallel."""
        return [one.ids for one in self._inner.encode_batch(list(texts), add_special_tokens=False)]

    @property
    def pieces(self) -> dict[int, str]:
        """The whole vocabulary, as it is spelt in the file."""
        return {id: piece for piece, id in self._inner.get_vocab(with_added_tokens=True).items()}

    @property
    def tables(self) -> dict[str, JSON]:
        """The file's contents, as the library itself writes them: the same tables look the same."""
        tables: dict[str, JSON] = json.loads(self._inner.to_str())
        return tables

    def encode_apart(self, text: str) -> list[int]:
        """Markers count only where `set_apart` renamed them. Everything else is text."""
        inner, real = self._apart
        return [real.get(id, id) for id in inner.encode(text, add_special_tokens=False).ids]

    def set_apart(self, marker: str) -> str:
        return _renamed(self.added[marker])

    def decode(self, ids: Iterable[int]) -> str:
        """All of it, markers included."""
        text: str = self._inner.decode(list(ids), skip_special_tokens=False)
        return text

    def decode_each(self, ids: Iterable[int]) -> list[str]:
        """Each by itself, in parallel."""
        return self._inner.decode_batch([[id] for id in ids], skip_special_tokens=False)

    def stream(self) -> TokenStream:
        return TokenStream(self._inner)

    def text_of(self, id: int) -> str:
        """The token as the vocabulary spells it, for people to look at."""
        return self._inner.id_to_token(id) or ""

    def id_of(self, token: str) -> int | None:
        id: int | None = self._inner.token_to_id(token)
        return id

    def bytes_of(self, id: int) -> bytes:
        """The bytes that the token stands for. Half a character is half a character."""
        if id in self.special:
            return self.text_of(id).encode()
        return self._byte_reader(self.text_of(id))

    @functools.cached_property
    def _byte_reader(self) -> _ByteReader:
        return _ByteReader(json.loads(self._spec))

    @functools.cached_property
    def _apart(self) -> tuple[tokenizers.Tokenizer, dict[int, int]]:
        """The same tokenizer with its markers renamed, and the way back to the real ids.

        Built when the first text with a marker in it arrives: most processes never pay for it.
        """
        spec: JSON = json.loads(self._spec)
        for token in spec["added_tokens"]:
            token["content"], token["single_word"] = _renamed(token["id"]), False
        spec["post_processor"] = None
        spec["padding"] = spec["truncation"] = None
        inner = tokenizers.Tokenizer.from_str(json.dumps(spec))
        places = {id: inner.token_to_id(_renamed(id)) for id in self.control}
        return inner, {place: id for id, place in places.items() if place is not None}


def _renamed(id: int) -> str:
    return f"\ufdd2{_NONCE}.{id}\ufdd3"


class TokenStream:
    """Ids in, text out as soon as whole characters are there."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        self._inner = inner
        self._stream = DecodeStream(skip_special_tokens=False)

    def feed(self, id: int) -> str:
        return self._stream.step(self._inner, id) or ""


class _ByteReader:
    """How this vocabulary spells bytes: byte-level letters (GPT-2), or `▁` and `<0x0A>` (SentencePiece)."""

    def __init__(self, spec: JSON) -> None:
        self._byte_level = "ByteLevel" in json.dumps(spec.get("decoder"))
        self._letters = {letter: byte for byte, letter in _byte_letters().items()}

    def __call__(self, token: str) -> bytes:
        if self._byte_level:
            if all(letter in self._letters for letter in token):
                return bytes(self._letters[letter] for letter in token)
            return token.encode()
        if re.fullmatch(r"<0x[0-9A-F]{2}>", token):
            return bytes([int(token[3:5], 16)])
        return token.replace(WORD_SPACE, " ").encode()


def _byte_letters() -> dict[int, str]:
    """GPT-2's table: printable bytes stand for themselves, the others for letters from U+0100 on."""
    printable: Sequence[int] = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {byte: chr(byte) for byte in printable}
    hidden = (byte for byte in range(256) if byte not in table)
    return table | {byte: chr(0x100 + place) for place, byte in enumerate(hidden)}
