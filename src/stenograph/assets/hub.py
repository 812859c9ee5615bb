"""A model by its name on the Hugging Face Hub. What is in its cache is used as it is, also offline."""

from __future__ import annotations

from pathlib import Path

from stenograph.errors import ConfigError

FILES = (
    "tokenizer*",
    "special_tokens_map.json",
    "config.json",
    "chat_template*",
    "additional_chat_templates/*.jinja",
    "*.model",
    "vocab.json",
    "merges.txt",
)
"""All that a tokenizer may be kept in; never the weights."""


def fetch(name: str) -> Path:
    """The folder in the cache. Whatever goes wrong (the library and the network raise dozens), the operator is told."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(FILES)))
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"{name} is no file or folder here, and the Hugging Face Hub does not give it: {reason}"
        ) from error
