"""A Hugging Face model folder: `tokenizer.json`, its config, and its chat templates, wherever they are kept.

Templates have moved over the years: inside `tokenizer_config.json` (one, or a list of named ones), in
`chat_template.json`, and today in `chat_template.jinja` with further ones in `additional_chat_templates/`. The newest
place counts, as in transformers.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from stenograph.assets import convert
from stenograph.assets.model import SPECIAL_TOKENS, ModelFiles
from stenograph.core import JSON, Value
from stenograph.errors import ConfigError

TOOL_USE = "tool_use"
UNLIMITED = 10**9
"""transformers writes 10**30 for a tokenizer that knows no limit."""


class _AddedToken(Value):
    id: int
    content: str


class _Spec(Value):
    """As much of a `tokenizer.json` as is looked at here."""

    model: msgspec.Raw
    added_tokens: tuple[_AddedToken, ...] = ()


class _NamedTemplate(Value):
    name: str
    template: str


def read_folder(folder: Path, name: str) -> ModelFiles:
    config = _object(folder / "tokenizer_config.json")
    templates = _templates(folder, config)
    return ModelFiles(
        name=name,
        tokenizer_json=_tokenizer_json(folder, config),
        chat_template=templates.get("default"),
        tool_chat_template=templates.get(TOOL_USE),
        special_tokens=_special_tokens({**_object(folder / "special_tokens_map.json"), **config}),
        max_model_len=_max_model_len(_object(folder / "config.json"), config),
    )


def _tokenizer_json(folder: Path, config: dict[str, JSON]) -> str:
    path = folder / "tokenizer.json"
    if not path.exists():
        return convert.tokenizer_json(folder)
    text = _text(path)
    try:
        spec = msgspec.json.decode(text, type=_Spec)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is damaged, or no tokenizer: {error}") from error
    _refuse_unknown_tokens(path, spec, config)
    return text


def _refuse_unknown_tokens(path: Path, spec: _Spec, config: dict[str, JSON]) -> None:
    """transformers adds what only the config names. Guessing how it would be split is no substitute."""
    there = {token.id for token in spec.added_tokens}
    for id, token in config.get("added_tokens_decoder", {}).items():
        if int(id) not in there:
            raise ConfigError(
                f"{path} lacks {token['content']!r}, which tokenizer_config.json names as token {id}: "
                "load it with transformers and save it again"
            )


def _templates(folder: Path, config: dict[str, JSON]) -> dict[str, str]:
    """By name; the only one of a model is `default`."""
    found = _named(config.get("chat_template"), folder)
    found |= _named(_object(folder / "chat_template.json").get("chat_template"), folder)
    if (path := folder / "chat_template.jinja").exists():
        found["default"] = _text(path)
    found |= {path.stem: _text(path) for path in (folder / "additional_chat_templates").glob("*.jinja")}
    others = [name for name in found if name != TOOL_USE]
    return found | {"default": found[others[0]]} if len(others) == 1 else found


def _named(template: JSON, folder: Path) -> dict[str, str]:
    if not template:
        return {}
    try:
        if isinstance(template, list):
            return {one.name: one.template for one in msgspec.convert(template, list[_NamedTemplate])}
        return {"default": msgspec.convert(template, str)}
    except msgspec.ValidationError as error:
        raise ConfigError(f"{folder}: its chat_template is neither a text nor a list of named ones: {error}") from error


def _special_tokens(config: dict[str, JSON]) -> dict[str, str]:
    """Saved as text, or as the flags of an added token around it."""
    values = {name: config.get(name) for name in SPECIAL_TOKENS}
    texts = {name: value["content"] if isinstance(value, dict) else value for name, value in values.items()}
    return {name: text for name, text in texts.items() if text is not None}


def _max_model_len(model: dict[str, JSON], tokenizer: dict[str, JSON]) -> int | None:
    model = {**model, **model.get("text_config", {})}
    length = model.get("max_position_embeddings") or tokenizer.get("model_max_length")
    return int(length) if length and length < UNLIMITED else None


def _object(path: Path) -> dict[str, JSON]:
    """The JSON object in a file; an empty one where there is no file."""
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(_text(path), type=dict[str, JSON])
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is not the JSON object it should be: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
