"""The hub's library reads its settings when it is imported, so each case is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.streams import small_spec

CODE = """
import sys
from stenograph.assets.load import load_model_files
from stenograph.errors import ConfigError
try:
    files = load_model_files(sys.argv[1])
    print(files.name, len(files.tokenizer_json), files.chat_template)
except ConfigError as error:
    print("ConfigError", error)
"""
NOBODY = "http://127.0.0.1:9"
"""The discard port: nothing listens there."""


def ask(name: str, cache: Path, **environment: str) -> str:
    settings = {**os.environ, "HF_HOME": str(cache), "HF_ENDPOINT": NOBODY, **environment}
    run = subprocess.run([sys.executable, "-c", CODE, name], capture_output=True, text=True, env=settings, check=True)
    return run.stdout.strip()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """As the library leaves it behind a download."""
    model = tmp_path / "hub" / "models--Some--Model-1B"
    snapshot = model / "snapshots" / ("a" * 40)
    for path, text in {
        model / "refs" / "main": "a" * 40,
        snapshot / "tokenizer.json": small_spec(),
        snapshot / "chat_template.jinja": "TEMPLATE",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize("offline", ["1", "0"])
def test_what_is_in_the_cache_needs_no_network(offline: str, cache: Path) -> None:
    found = ask("Some/Model-1B", cache, HF_HUB_OFFLINE=offline)
    assert found == f"Some/Model-1B {len(small_spec())} TEMPLATE"


@pytest.mark.parametrize(("offline", "why"), [("1", "outgoing traffic has been disabled"), ("0", "Connection refused")])
def test_a_model_that_cannot_be_had_is_said_in_one_line(offline: str, why: str, cache: Path) -> None:
    said = ask("No/Such", cache, HF_HUB_OFFLINE=offline)
    assert said.startswith("ConfigError No/Such is no file or folder here, and the Hugging Face Hub does not give it")
    assert why in said
    assert "\n" not in said
