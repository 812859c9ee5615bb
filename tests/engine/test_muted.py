from __future__ import annotations

from pathlib import Path

import pytest

from stenograph.engine.muted import ModelFacts, mute
from stenograph.errors import ConfigError
from stenograph.render.gguf import read
from tests.engine.streams import small_spec
from tests.gguf_files import CONTROL, gguf, model

FILE = model(small_spec(), "gpt-2", **{"ggml.eos_token_id": 1})
TYPES = "tokenizer.ggml.token_type"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(FILE)
    return path


def test_only_the_types_of_tokens_are_changed(source: Path, tmp_path: Path) -> None:
    facts = mute(source, tmp_path / "muted.gguf")
    before, after = FILE, (tmp_path / "muted.gguf").read_bytes()
    types, place = read(memoryview(before)).get(TYPES), read(memoryview(before)).places[TYPES]
    assert set(read(memoryview(after)).get(TYPES)) == {CONTROL} < set(types)
    assert before[:place] == after[:place]
    assert before[place + 4 * len(types) :] == after[place + 4 * len(types) :]
    assert facts == ModelFacts(vocab_size=len(types), eos=1, trained_context=512)


def test_the_model_itself_is_left_alone(source: Path, tmp_path: Path) -> None:
    mute(source, tmp_path / "muted.gguf")
    assert source.read_bytes() == FILE


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (b"", "empty"),
        (b"text", "not a GGUF file"),
        (FILE[:-100], "truncated"),
        (gguf({"general.architecture": "llama"}), "one file with its vocabulary in it"),
        (gguf({"tokenizer.ggml.tokens": ["a"]}), "one file with its vocabulary in it"),
        (gguf({"tokenizer.ggml.tokens": ["a"], TYPES: [1], "split.count": 2}), "one file with its vocabulary in it"),
    ],
)
def test_what_cannot_be_loaded_is_said_in_one_line(file: bytes, said: str, tmp_path: Path) -> None:
    source = tmp_path / "model.gguf"
    source.write_bytes(file)
    with pytest.raises(ConfigError, match=said) as caught:
        mute(source, tmp_path / "muted.gguf")
    assert str(source) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_room_for_the_copy_is_said(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be copied to .*missing"):
        mute(source, tmp_path / "missing" / "muted.gguf")
