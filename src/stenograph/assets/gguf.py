"""The tokenizer and the template that a GGUF file carries.

A GGUF names its pre-tokenizer (`tokenizer.ggml.pre`) but does not hold it: llama.cpp has one in code for each name.
Only the names whose rule is known here exactly are read; a near miss would give other ids than the model was trained
with, silently.
"""

from __future__ import annotations

import json
import mmap
from pathlib import Path

from stenograph.assets.model import SPECIAL_TOKENS, ModelFiles
from stenograph.core import JSON
from stenograph.errors import ConfigError
from stenograph.render.gguf import Gguf, read

CONTROL, USER_DEFINED = 3, 4
"""Types of tokens. Both are cut out of text before words are looked at; only the first are special."""
ID_KEYS = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
ADVICE = "pass --tokenizer with a Hugging Face folder or name of the same model"

WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""Llama 3's and Qwen 2's split, which differ in how many digits make a word."""


def read_gguf(path: Path) -> ModelFiles:
    file = metadata(path)
    return ModelFiles(
        name=path.stem,
        tokenizer_json=json.dumps(_tokenizer(file, path), ensure_ascii=False),
        chat_template=file.get("tokenizer.chat_template"),
        tool_chat_template=file.get("tokenizer.chat_template.tool_use"),
        special_tokens=_special_tokens(file),
        max_model_len=file.get(f"{file.get('general.architecture')}.context_length"),
    )


def metadata(path: Path) -> Gguf:
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            memoryview(mapped) as view,
        ):
            return read(view)
    except (ValueError, OSError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _special_tokens(file: Gguf) -> dict[str, str]:
    tokens = file.get("tokenizer.ggml.tokens", [])
    ids = {name: file.get(f"tokenizer.ggml.{ID_KEYS[name]}_token_id") for name in SPECIAL_TOKENS}
    return {name: tokens[id] for name, id in ids.items() if id is not None and id < len(tokens)}


def _tokenizer(file: Gguf, path: Path) -> dict[str, JSON]:
    kind, pre = file.get("tokenizer.ggml.model"), file.get("tokenizer.ggml.pre")
    if kind != "gpt2" or pre not in PRE_TOKENIZERS:
        raise ConfigError(f"{path}: its tokenizer ({kind}, {pre}) cannot be rebuilt exactly: {ADVICE}")
    tokens, types = file.get("tokenizer.ggml.tokens"), file.get("tokenizer.ggml.token_type")
    merges = file.get("tokenizer.ggml.merges")
    if not tokens or not merges or not types or len(types) != len(tokens):
        raise ConfigError(f"{path}: its tokenizer is not complete: {ADVICE}")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            _added(id, tokens[id], type) for id, type in enumerate(types) if type in (CONTROL, USER_DEFINED)
        ],
        "post_processor": None,
        "decoder": _byte_level(use_regex=True),
        "model": _bpe(tokens, merges, ignore_merges=pre == "llama-bpe"),
        **PRE_TOKENIZERS[pre],
    }


def _added(id: int, content: str, type: int) -> dict[str, JSON]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": id, "content": content, **flags, "special": type == CONTROL}


def _bpe(tokens: list[str], merges: list[str], *, ignore_merges: bool) -> dict[str, JSON]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": ignore_merges,
        "vocab": {token: id for id, token in enumerate(tokens)},
        "merges": merges,
    }


def _byte_level(*, use_regex: bool) -> dict[str, JSON]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def _sequence(*steps: dict[str, JSON]) -> dict[str, JSON]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def _split(digits: str) -> dict[str, JSON]:
    return {"type": "Split", "pattern": {"Regex": WORDS % digits}, "behavior": "Isolated", "invert": False}


PRE_TOKENIZERS: dict[str, dict[str, JSON]] = {
    "gpt-2": {"normalizer": None, "pre_tokenizer": _byte_level(use_regex=True)},
    "smollm": {
        "normalizer": None,
        "pre_tokenizer": _sequence({"type": "Digits", "individual_digits": True}, _byte_level(use_regex=True)),
    },
    "llama-bpe": {
        "normalizer": None,
        "pre_tokenizer": _sequence(_split(r"\p{N}{1,3}"), _byte_level(use_regex=False)),
    },
    "qwen2": {
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": _sequence(_split(r"\p{N}"), _byte_level(use_regex=False)),
    },
}
