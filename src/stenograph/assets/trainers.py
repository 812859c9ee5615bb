"""A tokenizer that a trainer has loaded already: transformers' own object, with the template that it carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from stenograph.assets.folder import TOOL_USE, UNLIMITED
from stenograph.assets.model import SPECIAL_TOKENS, ModelFiles
from stenograph.errors import ConfigError


def is_tokenizer(given: object) -> TypeGuard[Any]:
    """transformers' fast tokenizers have what this house needs; the slow ones, in Python, do not."""
    return hasattr(given, "backend_tokenizer")


def read_tokenizer(given: object) -> ModelFiles:
    if not is_tokenizer(given):
        kind = type(given).__name__
        raise ConfigError(f"tokenizer: {kind} is neither a name nor one of transformers' fast tokenizers")
    template, tool_template = _templates(given.chat_template)
    return ModelFiles(
        name=str(given.name_or_path) or "tokenizer",
        tokenizer_json=given.backend_tokenizer.to_str(),
        chat_template=template,
        tool_chat_template=tool_template,
        special_tokens={name: str(given.special_tokens_map[name]) for name in _named(given.special_tokens_map)},
        max_model_len=given.model_max_length if given.model_max_length < UNLIMITED else None,
    )


def _named(special: Mapping[str, Any]) -> list[str]:
    return [name for name in SPECIAL_TOKENS if special.get(name) is not None]


def _templates(template: str | Mapping[str, str] | None) -> tuple[str | None, str | None]:
    """transformers has one text, or several by their names."""
    if isinstance(template, Mapping):
        return template.get("default"), template.get(TOOL_USE)
    return template, None
