"""Everywhere that a Hugging Face folder has kept its templates and special tokens over the years."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stenograph.assets.folder import read_folder
from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.assets.model import ModelFiles
from stenograph.errors import ConfigError
from tests.engine.streams import small_spec

SPEC = small_spec()


def folder(at: Path, **files: Any) -> Path:
    """`tokenizer_config={…}` is the JSON file of that name; a text is a file as it stands, `__` is its dot."""
    (at / "tokenizer.json").write_text(SPEC)
    for name, content in files.items():
        if isinstance(content, str):
            (at / name.replace("__", ".")).write_text(content)
        else:
            (at / f"{name}.json").write_text(json.dumps(content))
    return at


def read(at: Path, **files: Any) -> ModelFiles:
    return read_folder(folder(at, **files), "m")


def test_a_bare_tokenizer_is_enough(tmp_path: Path) -> None:
    assert read(tmp_path) == ModelFiles("m", SPEC, None, None, {}, None)


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config": {"chat_template": "T"}},
        {"tokenizer_config": {"chat_template": [{"name": "default", "template": "T"}]}},
        {"tokenizer_config": {"chat_template": [{"name": "chatml", "template": "T"}]}},
        {"chat_template": {"chat_template": "T"}},
        {"chat_template__jinja": "T"},
        {"tokenizer_config": {"chat_template": "old"}, "chat_template": {"chat_template": "T"}},
        {"chat_template": {"chat_template": "old"}, "chat_template__jinja": "T"},
    ],
)
def test_the_template_is_found_and_the_newest_place_counts(files: dict[str, Any], tmp_path: Path) -> None:
    found = read(tmp_path, **files)
    assert (found.chat_template, found.tool_chat_template) == ("T", None)


def test_a_second_template_for_tools_is_found_by_name(tmp_path: Path) -> None:
    templates = [
        {"name": "default", "template": "D"},
        {"name": "tool_use", "template": "T"},
        {"name": "rag", "template": "R"},
    ]
    found = read(tmp_path, tokenizer_config={"chat_template": templates})
    assert (found.chat_template, found.tool_chat_template) == ("D", "T")


def test_a_second_template_for_tools_is_found_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("T")
    found = read(tmp_path, chat_template__jinja="D")
    assert (found.chat_template, found.tool_chat_template) == ("D", "T")


def test_special_tokens_are_texts_whichever_way_they_were_saved(tmp_path: Path) -> None:
    config = {
        "bos_token": None,
        "eos_token": {"content": "</s>", "lstrip": False},
        "pad_token": "<pad>",
        "add_bos_token": True,
    }
    found = read(
        tmp_path, tokenizer_config=config, special_tokens_map={"unk_token": {"content": "<unk>"}, "pad_token": "x"}
    )
    assert found.special_tokens == {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    assert found.eos_token == "</s>"


@pytest.mark.parametrize(
    ("files", "length"),
    [
        ({"tokenizer_config": {"model_max_length": 4096}}, 4096),
        ({"tokenizer_config": {"model_max_length": 10**30}}, None),
        ({"tokenizer_config": {"model_max_length": 4096}, "config": {"max_position_embeddings": 2048}}, 2048),
        ({"config": {"text_config": {"max_position_embeddings": 1024}}}, 1024),
    ],
)
def test_how_long_a_context_may_be(files: dict[str, Any], length: int | None, tmp_path: Path) -> None:
    assert read(tmp_path, **files).max_model_len == length


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"tokenizer__json": '{"model": {'}, "tokenizer.json is damaged"),
        ({"tokenizer__json": '{"version": "1.0"}'}, "tokenizer.json is damaged, or no tokenizer: .*`model`"),
        ({"tokenizer_config__json": "{"}, "tokenizer_config.json is not the JSON object"),
        ({"tokenizer_config": []}, "tokenizer_config.json is not the JSON object"),
        ({"chat_template__json": "["}, "chat_template.json is not the JSON object"),
        ({"tokenizer_config": {"chat_template": [{"template": "T"}]}}, "its chat_template is neither .* `name`"),
        ({"tokenizer_config": {"chat_template": {"default": "T"}}}, "its chat_template is neither a text nor a list"),
        (
            {"tokenizer_config": {"added_tokens_decoder": {"9999": {"content": "<tool>"}}}},
            "lacks '<tool>', which tokenizer_config.json names as token 9999",
        ),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(files: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        read(tmp_path, **files)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_said_to_be_unreadable(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"chat_template\.jinja cannot be read"):
        read_folder(tmp_path, "m")


def test_a_folder_without_a_tokenizer_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no tokenizer\.json: it is not a model folder"):
        read_folder(tmp_path, "m")


def test_tokens_that_the_config_only_repeats_are_no_fault(tmp_path: Path) -> None:
    added = json.loads(SPEC)["added_tokens"]
    decoder = {str(token["id"]): {"content": token["content"]} for token in added}
    assert read(tmp_path, tokenizer_config={"added_tokens_decoder": decoder}).tokenizer_json == SPEC


def test_every_real_folder_is_read(tokenizer_folder: Path) -> None:
    files = load_model_files(str(tokenizer_folder))
    assert files.name == tokenizer_folder.name
    assert files.chat_template
    assert files.eos_token in load_tokenizer(files).added
    assert (files.tool_chat_template is not None) == (files.name == "hermes-2-pro")
