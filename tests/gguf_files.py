"""Writes GGUF files small enough to be read in a test, by the format's own description."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from stenograph.core import JSON

U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
VERSION, ALIGNMENT = 3, 32
BOS, EOS = "<|im_start|>", "<|im_end|>"


def gguf(metadata: Mapping[str, Any], tensors: Sequence[bytes] = (b"\1" * 64,)) -> bytes:
    keys = b"".join(_string(key) + _value(value) for key, value in metadata.items())
    infos, body = b"", b""
    for place, data in enumerate(tensors):
        infos += _string(f"tensor{place}") + struct.pack("<IQIQ", 1, len(data) // 4, 0, len(body))
        body += data.ljust(-(-len(data) // ALIGNMENT) * ALIGNMENT, b"\0")
    head = b"GGUF" + struct.pack("<IQQ", VERSION, len(tensors), len(metadata)) + keys + infos
    return head.ljust(-(-len(head) // ALIGNMENT) * ALIGNMENT, b"\0") + body


def model(spec: str, pre: str, **more: Any) -> bytes:
    """A GGUF with the byte-level tokenizer of a `tokenizer.json`."""
    tokenizer: JSON = json.loads(spec)
    vocab: dict[str, int] = tokenizer["model"]["vocab"]
    added = {token["id"]: token for token in tokenizer["added_tokens"]}
    tokens, types = _vocabulary(vocab, added)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    return gguf(
        {
            "general.architecture": "llama",
            "llama.context_length": 512,
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": pre,
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.merges": merges,
            **{f"tokenizer.{key}": value for key, value in more.items()},
        }
    )


def _vocabulary(vocab: Mapping[str, int], added: Mapping[int, JSON]) -> tuple[list[str], list[int]]:
    """Ids that no token has are filled up, as converters do."""
    texts = {id: token for token, id in vocab.items()} | {id: token["content"] for id, token in added.items()}
    ids = range(max(texts) + 1)
    kinds = {id: CONTROL if token["special"] else USER_DEFINED for id, token in added.items()}
    return (
        [texts.get(id, f"[PAD{id}]") for id in ids],
        [kinds.get(id, NORMAL if id in texts else UNUSED) for id in ids],
    )


def _string(text: str) -> bytes:
    coded = text.encode()
    return struct.pack("<Q", len(coded)) + coded


def _value(value: Any) -> bytes:
    if isinstance(value, list):
        if isinstance(value[0], str):
            return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(_string, value))
        return struct.pack(f"<IIQ{len(value)}i", ARRAY, I32, len(value), *value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _string(value)
    code, kind = {bool: ("?", BOOL), int: ("I", U32), float: ("f", F32)}[type(value)]
    return struct.pack(f"<I{code}", kind, value)
