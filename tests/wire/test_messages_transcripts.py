"""Bytes in, bytes out, as for chat: each file of `tests/transcripts/messages` is one call."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from anthropic.types import Message

from stenograph.core import Ask
from stenograph.wire import messages
from tests.wire.test_chat_transcripts import WORDS, event, sections

TRANSCRIPTS = sorted((Path(__file__).resolve().parents[1] / "transcripts" / "messages").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    said = sections(path)
    decoded = messages.decode(said["request"].encode(), WORDS.__getitem__)
    assert decoded.ask == msgspec.json.decode(said["ask"], type=Ask)
    events = [event(line) for line in said["events"].splitlines()]

    whole = decoded.encoder.json(events)
    assert whole.decode() == said["json"].rstrip("\n")
    Message.model_validate_json(whole)
    assert b"".join(decoded.encoder.sse(event) for event in events).decode() == said["sse"] + "\n"


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 3
