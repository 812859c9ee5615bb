from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stenograph.assets import convert
from stenograph.assets.folder import read_folder
from stenograph.errors import ConfigError


@pytest.fixture
def old_folder(tmp_path: Path) -> Path:
    (tmp_path / "tokenizer.model").write_bytes(b"sentencepiece")
    return tmp_path


def transformers(monkeypatch: pytest.MonkeyPatch, from_pretrained: Any) -> None:
    """As much of it as is asked for. The real one takes minutes to install."""
    auto = SimpleNamespace(from_pretrained=from_pretrained)
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(AutoTokenizer=auto))
    monkeypatch.setattr(convert, "find_spec", lambda name: name)


def test_without_transformers_it_says_what_to_install(old_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"only tokenizer\.model: pip install transformers sentencepiece"):
        read_folder(old_folder, "m")


def test_with_transformers_it_is_converted(old_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def from_pretrained(folder: str, **options: Any) -> Any:
        asked.append((folder, options))
        return SimpleNamespace(backend_tokenizer=SimpleNamespace(to_str=lambda: "the spec"))

    transformers(monkeypatch, from_pretrained)
    assert read_folder(old_folder, "m").tokenizer_json == "the spec"
    assert asked == [(str(old_folder), {"local_files_only": True})]


def test_what_transformers_cannot_convert_is_said_in_one_line(
    old_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_pretrained(folder: str, **options: Any) -> Any:
        raise RuntimeError("bad model proto\nand a page of advice")

    transformers(monkeypatch, from_pretrained)
    with pytest.raises(ConfigError, match=r"cannot convert tokenizer\.model: bad model proto$"):
        read_folder(old_folder, "m")
