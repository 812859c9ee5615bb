"""`stenograph report`: a store's samples as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.assets.smollm2 import NAME as SMOLLM2
from stenograph.commands.stored import stored_sessions
from stenograph.errors import ConfigError
from stenograph.export.sample import samples
from stenograph.inspector.report import report_html
from stenograph.store.sqlite import SqliteReader


def run(options: dict[str, Any]) -> int:
    tokenizer = load_tokenizer(load_model_files(options.get("tokenizer", SMOLLM2)))
    with SqliteReader(Path(options["store"])) as reader:
        found = [
            sample
            for one in stored_sessions(reader, options.get("session"))
            for sample in samples(one.facts, [turn for call in one.calls for turn in call.turns])
        ]
    page = report_html(found, tokenizer, title="Rollouts", facts={"Store": options["store"]})
    try:
        Path(options["out"]).write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {options['out']}: {error.strerror}") from error
    return 0
