"""`stenograph probe` as a person and a machine see it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stenograph.assets import smollm2
from stenograph.cli import main
from stenograph.commands.probe_text import text_of
from stenograph.errors import ConfigError
from stenograph.render.probe import probe
from tests.render.rollouts import renderer_of

TRANSCRIPTS = Path(__file__).resolve().parents[1] / "transcripts" / "probe"


@pytest.fixture(scope="module")
def model() -> str:
    try:
        smollm2.find()
    except ConfigError as error:
        pytest.skip(str(error))
    return smollm2.NAME


def printed(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str) -> str:
    assert main(["probe", *arguments]) == 0
    out, err = capfdbinary.readouterr()
    assert err == b""
    return out.decode()


@pytest.mark.parametrize("name", ["qwen3", "mistral-small-3.2", "gemma3"])
def test_what_a_person_reads(shared_tokenizers: dict[str, Path], name: str) -> None:
    """Transcripts: when one changes, read it."""
    shown = text_of(probe(renderer_of(shared_tokenizers[name]), name))
    assert shown == (TRANSCRIPTS / f"{name}.txt").read_text()


def test_no_line_is_wider_than_a_terminal_and_no_word_is_lost(shared_tokenizers: dict[str, Path]) -> None:
    text = (TRANSCRIPTS / "mistral-small-3.2.txt").read_text()
    assert max(map(len, text.splitlines())) <= 120
    assert "Tool call IDs should be alphanumeric strings with length 9!" in " ".join(text.split())


def test_a_folder(capfdbinary: pytest.CaptureFixture[bytes], shared_tokenizers: dict[str, Path]) -> None:
    shown = printed(capfdbinary, str(shared_tokenizers["qwen2.5"]))
    assert shown.startswith("qwen2.5: append-only: ")


def test_the_bundled_model(capfdbinary: pytest.CaptureFixture[bytes], model: str) -> None:
    assert printed(capfdbinary, model).startswith("smollm2: append-only: ")


def test_a_gguf_file_brings_its_own_template(capfdbinary: pytest.CaptureFixture[bytes], model: str) -> None:
    """SmolLM2's own drops tools, which is why ours is bundled with it."""
    shown = printed(capfdbinary, str(smollm2.find()))
    assert "the template writes no tool calls" in shown
    assert "Don't give tools to an agent on this template" in shown


KEYS = {
    "": {
        "schema", "model", "templates", "append_only", "reasoning", "think_parser", "call_parser", "stops",
        "stop_strings", "date_in_prompt", "takes", "tails", "costs",
    },
    "reasoning": {"last", "in_tool_loop", "behind_user"},
    "think_parser": {"source", "opening", "closing", "key"},
    "call_parser": {"source", "name", "form", "arguments_as_text"},
    "stops": {"id", "text"},
    "takes": {"what", "verdict", "words"},
    "tails": {"tail", "tools", "thinking", "verdict", "detail"},
    "costs": {"rollout", "tools", "thinking", "turns", "settings"},
}  # fmt: skip
"""They change only on purpose."""


def test_what_a_machine_reads(capfdbinary: pytest.CaptureFixture[bytes], model: str) -> None:
    found: dict[str, Any] = json.loads(printed(capfdbinary, model, "--json"))
    parts = {name: part if isinstance(part, list) else [part] for name, part in found.items() if name in KEYS}
    seen = {"": set(found)} | {name: set().union(*part) for name, part in parts.items()}
    assert seen == KEYS
    assert (found["schema"], found["model"], found["append_only"]) == (1, "smollm2", "yes")
    assert len(found["tails"]) == 7 * 2 * 3
    assert found["costs"][0]["settings"][0] == {"history": "template", "reasoning": "restore", "forks": 0}


def broken(folder: Path, source: Path, template: str | None) -> str:
    folder.mkdir()
    (folder / "tokenizer.json").symlink_to(source / "tokenizer.json")
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    return str(folder)


def test_wrong_input_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, shared_tokenizers: dict[str, Path]
) -> None:
    source = shared_tokenizers["qwen2.5"]
    (text := tmp_path / "text").write_text("hello")
    (empty := tmp_path / "empty").mkdir()
    wrong = {
        "./nowhere": "no such file or folder",
        str(text): "not a GGUF file",
        str(empty): "no tokenizer.json",
        broken(tmp_path / "plain", source, None): "brings no chat template",
        broken(tmp_path / "broken", source, "{% if %}"): "not valid Jinja",
    }
    for argument, said in wrong.items():
        assert main(["probe", argument]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), err.startswith("stenograph: ")) == ("", 1, True)
        assert said in err


def test_an_argument_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["probe"])
    assert (exit.value.code, capsys.readouterr().err.count("\n")) == (2, 1)
