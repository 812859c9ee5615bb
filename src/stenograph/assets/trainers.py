"""A tokenizer that a trainer has loaded already, with the template that it carries: transformers' own object, or any
other that encodes and decodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

from stenograph.assets.folder import TOOL_USE, UNLIMITED
from stenograph.assets.load import load_tokenizer
from stenograph.assets.model import SPECIAL_TOKENS, ModelFiles
from stenograph.assets.objects import ObjectTemplate, ObjectTokenizer, named_token
from stenograph.errors import ConfigError
from stenograph.render.template import Template
from stenograph.render.tokenizer import Tokenizer


class Brought(NamedTuple):
    files: ModelFiles
    tokenizer: Tokenizer
    template: Template | None = None
    """In place of the text in `files`."""


def brought(given: object) -> Brought:
    if isinstance(given, Brought):
        return given
    if not is_tokenizer(given) and _is_object(given):
        return _object(given)
    files = read_tokenizer(given)
    return Brought(files, load_tokenizer(files))


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


def _is_object(given: object) -> TypeGuard[Any]:
    return hasattr(given, "encode") and hasattr(given, "decode")


def _object(given: Any) -> Brought:
    tokenizer = ObjectTokenizer(given)
    source, tool_source = _templates(getattr(given, "chat_template", None))
    length = getattr(given, "model_max_length", UNLIMITED)
    files = ModelFiles(
        name=str(getattr(given, "name_or_path", "")) or type(given).__name__,
        tokenizer_json="",
        chat_template=source,
        tool_chat_template=tool_source,
        special_tokens={
            name: named_token(given, name) for name in SPECIAL_TOKENS if getattr(given, f"{name}_id", None) is not None
        },
        max_model_len=length if length < UNLIMITED else None,
    )
    called = source is None and hasattr(given, "apply_chat_template")
    return Brought(files, tokenizer, ObjectTemplate(given, tokenizer) if called else None)


def _named(special: Mapping[str, Any]) -> list[str]:
    return [name for name in SPECIAL_TOKENS if special.get(name) is not None]


def _templates(template: str | Mapping[str, str] | None) -> tuple[str | None, str | None]:
    """transformers has one text, or several by their names."""
    if isinstance(template, Mapping):
        return template.get("default"), template.get(TOOL_USE)
    return template, None
