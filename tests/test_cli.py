"""Every mistake at the command line is one line on stderr that says what to do, and exit code 2."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from stenograph import cli
from stenograph.store.lock import FolderLock

FAKE = ("serve", "--engine", "scripted=", "--port", "0", "--store", ":memory:")
FILES = {
    "latin.toml": b"\xff", "half.toml": b"a = [", "typo.toml": b'engin = "x"', "number.toml": b"engine = 3",
    "bad.jinja": b"{{ bad", "latin.jinja": b"\xff", "noise.gguf": b"\x01" * 100, "short.gguf": b"GGUF",
    "script.toml": b"x", "file": b"", "folder/empty": b"",
}  # fmt: skip
MISTAKES: dict[tuple[str, ...], str] = {
    (): "required: COMMAND",
    ("sevre",): "invalid choice: 'sevre'",
    ("serve",): "serve needs an engine",
    ("serve", "--prot", "1"): "unrecognized arguments: --prot",
    ("serve", "--engine", "vlm=http://x"): "expected KIND=WHERE",
    ("serve", "--engine", "local="): "expected KIND=WHERE",
    ("serve", "--engine", "vllm=nonsense"): "http://HOST:PORT",
    ("serve", "--engine", "vllm=http://127.0.0.1:1", "--port", "0"): "does not answer",
    ("serve", "--engine", "local=nope.gguf", "--port", "0"): "no such file",
    ("serve", "--engine", "local=noise.gguf", "--port", "0"): "not a GGUF file",
    ("serve", "--engine", "local=short.gguf", "--port", "0"): "truncated",
    ("serve", "--engine", "scripted=script.toml", "--port", "0"): "cannot be used",
    ("serve", "--engine", "scripted=nope", "--port", "0"): "No such file",
    ("serve", "--config", "nope.toml"): "No such file",
    ("serve", "--config", "folder"): "Is a directory",
    ("serve", "--config", "latin.toml"): "utf-8",
    ("serve", "--config", "half.toml"): "half.toml",
    ("serve", "--config", "typo.toml"): "there is no setting `engin`",
    ("serve", "--config", "number.toml"): "--engine",
    (*FAKE, "--port", "x"): "--port",
    (*FAKE, "--port", "99999"): "--port",
    (*FAKE, "--host", ""): "--host",
    (*FAKE, "--host", "203.0.113.1", "--admin-key", "k"): "cannot listen on",
    (*FAKE, "--host", "0.0.0.0"): "without --admin-key whoever reaches it",
    (*FAKE, "--host", "::"): "without --admin-key whoever reaches it",
    (*FAKE, "--host", "gateway.example"): "without --admin-key whoever reaches it",
    (*FAKE, "--store", ""): "--store",
    (*FAKE, "--store", "file"): "it is a file",
    (*FAKE, "--store", "taken"): "in use by another",
    (*FAKE, "--admin-key", ""): "--admin-key",
    (*FAKE, "--model", ""): "--model",
    (*FAKE, "--default-session", "a/b"): "expected 1 to 128 characters",
    (*FAKE, "--grace", "nan"): "--grace",
    (*FAKE, "--grace", "inf"): "--grace",
    (*FAKE, "--history", "x"): "invalid choice: 'x'",
    (*FAKE, "--max-body-bytes", "0"): "--max-body-bytes",
    (*FAKE, "--tool-parser", "x"): "expected auto, none",
    (*FAKE, "--tokenizer", "folder"): "no tokenizer.json",
    (*FAKE, "--tokenizer", "./nope"): "no such file or folder",
    (*FAKE, "--chat-template", "nope"): "No such file",
    (*FAKE, "--chat-template", "bad.jinja"): "not valid Jinja",
    (*FAKE, "--chat-template", "latin.jinja"): "not UTF-8",
    (*FAKE, "--chat-template-kwargs", "{"): "not JSON",
    (*FAKE, "--chat-template-kwargs", '{"a": NaN}'): "not JSON",
    (*FAKE, "--chat-template-kwargs", "[1]"): "--chat-template-kwargs",
    ("export", "--store", "folder"): "required: --format",
    ("export", "--store", "folder", "--format", "jsonl"): "there is no stenograph.db",
    ("export", "--store", "nope", "--format", "xml"): "invalid choice: 'xml'",
    ("report", "--store", "nope", "--out", "x.html"): "there is no stenograph.db",
    ("probe",): "required: DIR_OR_NAME",
    ("probe", "folder"): "no tokenizer.json",
    ("demo", "--rollouts", "0"): "at least one",
    ("demo", "--out", "file"): "it is a file",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "taken").mkdir()
    lock = FolderLock(tmp_path / "taken")
    yield
    lock.release()


def said(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    try:
        code = cli.main(arguments)
    except SystemExit as left:
        code = int(left.code or 0)
    out, err = capsys.readouterr()
    assert out == ""
    return code, err


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, err = said(arguments, capsys)
    assert code == 2
    assert err.startswith("stenograph")
    assert err.count("\n") == 1
    assert MISTAKES[arguments] in err


def test_a_port_that_is_taken_is_said_before_anything_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, err = said(("serve", "--engine", "local=nope.gguf", "--port", str(port)), capsys)
    assert (code, err) == (2, f"stenograph: cannot listen on 127.0.0.1:{port}: Address already in use\n")
