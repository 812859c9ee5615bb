"""A tokenizer rebuilt from a GGUF gives the ids of the one that went into it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stenograph.assets.gguf import read_gguf
from stenograph.assets.load import load_tokenizer
from stenograph.errors import ConfigError
from stenograph.render.tokenizer import Tokenizer
from tests.engine.streams import small_spec
from tests.gguf_files import gguf, model

PRE = {
    "qwen2.5": "qwen2",
    "qwen3": "qwen2",
    "llama3.1": "llama-bpe",
    "hermes-2-pro": "llama-bpe",
    "smollm3": "llama-bpe",
}
SMALL = json.loads(small_spec())
TEXTS = (
    "Hello, we can use it. It's 12345 and 3.14159: isn't it? WE'LL SEE, I'D SAY",
    "def f(x):\n\treturn  x  **2   # two\n\n\n    pass\r\n\r\n",
    "日本語のテキスト、中文字符 한국어 العربية עברית हिन्दी ไทย",
    "emoji 😀👩\u200d🚀 e\u0301 é ﬁ Å Ⅷ ½ ٣ \u00a0\u2003 \ufeff\u200b",
    "<|im_start|>user\nhi<|im_end|>\n<tool_call>{}</tool_call> <|eot_id|><|end_of_text|>",
    "   leading, trailing   ",
    "\n \n\t\n  x",
    "",
)


def written(folder: Path, file: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(file)
    return path


@pytest.mark.parametrize(("name", "pre"), PRE.items())
def test_it_gives_the_same_ids(name: str, pre: str, shared_tokenizers: dict[str, Path], tmp_path: Path) -> None:
    spec = (shared_tokenizers[name] / "tokenizer.json").read_text()
    truth, rebuilt = Tokenizer(spec), load_tokenizer(read_gguf(written(tmp_path, model(spec, pre))))
    assert [rebuilt.encode(text) for text in TEXTS] == [truth.encode(text) for text in TEXTS]
    assert [rebuilt.decode(truth.encode(text)) for text in TEXTS] == [
        truth.decode(truth.encode(text)) for text in TEXTS
    ]
    assert rebuilt.added == truth.added


def test_which_added_tokens_are_special_is_kept(tmp_path: Path) -> None:
    """`small_spec` has some of both kinds."""
    rebuilt = json.loads(read_gguf(written(tmp_path, model(small_spec(), "gpt-2"))).tokenizer_json)
    special = [{token["content"]: token["special"] for token in spec["added_tokens"]} for spec in (rebuilt, SMALL)]
    assert special[0] == special[1]
    assert set(special[0].values()) == {True, False}


@pytest.mark.parametrize(("pre", "pieces"), [("llama-bpe", ["zq"]), ("qwen2", ["z", "q"])])
def test_a_word_that_no_merge_makes_is_whole_only_for_llama_3(pre: str, pieces: list[str], tmp_path: Path) -> None:
    spec = json.loads(small_spec())
    spec["model"]["vocab"]["zq"] = len(spec["model"]["vocab"]) + len(spec["added_tokens"])
    tokenizer = load_tokenizer(read_gguf(written(tmp_path, model(json.dumps(spec), pre))))
    assert [tokenizer.text_of(id) for id in tokenizer.encode("zq")] == pieces


@pytest.mark.parametrize(("pre", "pieces"), [("smollm", ["a", "Ġ", "1", "2"]), ("gpt-2", ["a", "Ġ12"])])
def test_digits_are_split_as_the_name_says(pre: str, pieces: list[str], tmp_path: Path) -> None:
    spec = json.loads(small_spec())
    for token in ("12", "Ġ12"):
        spec["model"]["vocab"][token] = len(spec["model"]["vocab"]) + len(spec["added_tokens"])
    spec["model"]["merges"] += [["1", "2"], ["Ġ", "12"]]
    tokenizer = load_tokenizer(read_gguf(written(tmp_path, model(json.dumps(spec), pre))))
    assert [tokenizer.text_of(id) for id in tokenizer.encode("a 12")] == pieces


def test_the_rest_is_read_as_well(tmp_path: Path) -> None:
    more = {"chat_template": "one", "chat_template.tool_use": "two", "ggml.eos_token_id": 1, "ggml.padding_token_id": 0}
    files = read_gguf(written(tmp_path, model(small_spec(), "gpt-2", **more)))
    assert (files.name, files.chat_template, files.tool_chat_template, files.max_model_len) == (
        "model",
        "one",
        "two",
        512,
    )
    assert files.special_tokens == {"eos_token": "<|im_end|>", "pad_token": "<|im_start|>"}
    assert files.eos_token == "<|im_end|>"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (b"", "empty"),
        (b"text", "not a GGUF file"),
        (model(small_spec(), "gpt-2")[:1000], "truncated"),
        (model(small_spec(), "tekken"), r"\(gpt2, tekken\) cannot be rebuilt exactly: pass --tokenizer"),
        (gguf({"tokenizer.ggml.model": "llama"}), r"\(llama, None\) cannot be rebuilt exactly"),
        (gguf({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2"}), "not complete: pass --tokenizer"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(file: bytes, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, file)
    with pytest.raises(ConfigError, match=said) as caught:
        read_gguf(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
