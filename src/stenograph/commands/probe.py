"""`stenograph probe`: what a model's chat template will do to a rollout, before there is one."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.commands.probe_text import text_of
from stenograph.config import Settings
from stenograph.errors import ConfigError
from stenograph.furnish import renderer_of
from stenograph.render.probe import probe


def run(options: dict[str, Any]) -> int:
    files = load_model_files(options["model"])
    if files.chat_template is None:
        raise ConfigError(f"{files.name} brings no chat template, so there is nothing to probe")
    found = probe(renderer_of(Settings(), files, load_tokenizer(files)), files.name)
    text = msgspec.json.format(msgspec.json.encode(found)) + b"\n" if options["json"] else text_of(found).encode()
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()
    return 0
