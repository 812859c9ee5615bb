"""Where a model's tokenizer and template come from: the one place that decides what a `WHERE` means."""

from __future__ import annotations

import re
from pathlib import Path

from stenograph.assets import hub, smollm2
from stenograph.assets.folder import read_folder
from stenograph.assets.gguf import read_gguf
from stenograph.assets.model import ModelFiles
from stenograph.errors import ConfigError
from stenograph.render.tokenizer import Tokenizer

HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)


def load_model_files(where: str) -> ModelFiles:
    """A folder, a GGUF file, `smollm2` (the bundled model), or a name on the Hugging Face Hub."""
    if where == smollm2.NAME:
        return smollm2.read()
    path = Path(where).expanduser()
    if path.is_dir():
        return read_folder(path, path.resolve().name)
    if path.is_file():
        return read_gguf(path)
    if _looks_like_a_path(where):
        raise ConfigError(f"{where}: no such file or folder")
    return read_folder(hub.fetch(where), where)


def gguf_file(where: str) -> Path:
    """The file with the weights, for the embedded engine: a GGUF's path, or `smollm2`."""
    if where == smollm2.NAME:
        return smollm2.find()
    path = Path(where).expanduser()
    if not path.is_file():
        raise ConfigError(f"{where}: no such file (the embedded engine takes a GGUF file, or {smollm2.NAME})")
    return path


def load_tokenizer(files: ModelFiles) -> Tokenizer:
    try:
        return Tokenizer(files.tokenizer_json, files.special_tokens.values())
    except Exception as error:  # `tokenizers` raises nothing more specific
        raise ConfigError(f"{files.name}: its tokenizer.json cannot be used: {error}") from error


def _looks_like_a_path(where: str) -> bool:
    return where.startswith((".", "~")) or where.endswith(".gguf") or not HUB_NAME.fullmatch(where)
