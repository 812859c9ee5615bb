"""Tokenizers from before `tokenizer.json` (SentencePiece, tiktoken), converted by transformers where it is there."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from stenograph.errors import ConfigError

CONVERTIBLE = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "tiktoken.model", "vocab.json")


def tokenizer_json(folder: Path) -> str:
    """The text of the `tokenizer.json` that transformers makes of what is there."""
    found = next((name for name in CONVERTIBLE if (folder / name).exists()), None)
    if found is None:
        raise ConfigError(f"{folder} has no tokenizer.json: it is not a model folder with a tokenizer in it")
    if find_spec("transformers") is None:
        raise ConfigError(
            f"{folder} has no tokenizer.json, only {found}: "
            "pip install transformers sentencepiece tiktoken protobuf to have it converted"
        )
    return _converted(folder, found)


def _converted(folder: Path, found: str) -> str:
    """transformers' converters raise whatever the format at hand led them to."""
    from transformers import AutoTokenizer

    try:
        text: str = AutoTokenizer.from_pretrained(str(folder), local_files_only=True).backend_tokenizer.to_str()
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ConfigError(f"{folder}: transformers cannot convert {found}: {reason[0]}") from error
    return text
