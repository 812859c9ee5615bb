"""`stenograph report`: a store's samples as one HTML file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.assets.smollm2 import NAME as SMOLLM2
from stenograph.commands.stored import stored_sessions
from stenograph.core import Sample
from stenograph.errors import ConfigError
from stenograph.export.sample import samples
from stenograph.inspector.report import report_html
from stenograph.render.tokenizer import Tokenizer
from stenograph.store.sqlite import SqliteReader


def run(options: dict[str, Any]) -> int:
    tokenizer = _tokenizer(options)
    with SqliteReader(Path(options["store"])) as reader:
        sessions = list(stored_sessions(reader, options.get("session")))
    found = [
        sample for one in sessions for sample in samples(one.facts, [turn for call in one.calls for turn in call.turns])
    ]
    require_spelt(found, tokenizer)
    hashes = {call.turns[0].call.tokenizer_hash for one in sessions for call in one.calls}
    if hashes and hashes != {tokenizer.hash}:
        print("stenograph: the record was made with another tokenizer file: if words look odd, give its --tokenizer",
              file=sys.stderr)  # fmt: skip
    page = report_html(found, tokenizer, title="Rollouts", facts={"Store": options["store"]})
    try:
        Path(options["out"]).write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {options['out']}: {error.strerror}") from error
    return 0


def _tokenizer(options: dict[str, Any]) -> Tokenizer:
    try:
        return load_tokenizer(load_model_files(options.get("tokenizer", SMOLLM2)))
    except ConfigError as error:
        if "tokenizer" in options:
            raise
        raise ConfigError("give --tokenizer the folder or name of the model whose tokens these are") from error


def require_spelt(found: Sequence[Sample], tokenizer: Tokenizer) -> None:
    """Another model's ids would be spelt as words that nobody said. One that this vocabulary lacks gives them away."""
    largest = max((int(sample.tokens.max()) for sample in found), default=0)
    if largest >= tokenizer.vocab_size:
        raise ConfigError(
            f"the store has ids that this tokenizer lacks ({largest}): give --tokenizer its model's folder or name"
        )
