"""Bytes in, bytes out, for the protocols without messages: files as `test_chat_transcripts.py` describes them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from openai.types import Completion

from stenograph.core import JSON, Ask
from stenograph.wire import completions, generate
from stenograph.wire.codec import Codec
from tests.wire.test_chat_transcripts import WORDS, event, sections

FOLDER = Path(__file__).resolve().parents[1] / "transcripts"
CODECS: dict[str, Codec] = {"completions": completions, "generate": generate}
TRANSCRIPTS = sorted(path for protocol in CODECS for path in (FOLDER / protocol).glob("*.txt"))


def exact(ask: Ask) -> JSON:
    return msgspec.to_builtins({**msgspec.structs.asdict(ask), "given": sorted(ask.given)}, enc_hook=np.ndarray.tolist)


def ask_in(text: str) -> Ask:
    return msgspec.json.decode(text, type=Ask, dec_hook=lambda _, numbers: np.array(numbers, np.int32))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_transcript(path: Path) -> None:
    said = sections(path)
    decoded = CODECS[path.parent.name].decode(said["request"].encode(), WORDS.__getitem__)
    assert exact(decoded.ask) == exact(ask_in(said["ask"]))
    events = [event(line) for line in said["events"].splitlines()]

    whole = decoded.encoder.json(events)
    assert whole.decode() == said["json"].rstrip("\n")
    assert b"".join(decoded.encoder.sse(event) for event in events).decode() == said["sse"] + "\n"
    if path.parent.name == "completions":
        Completion.model_validate_json(whole)


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 5
