"""Bytes in, bytes out. Each file of `tests/transcripts/responses` is one call, written as those of chat are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from stenograph.core import Ask
from stenograph.wire import responses
from tests.wire.test_chat_transcripts import WORDS, event, sections

TRANSCRIPTS = sorted((Path(__file__).resolve().parents[1] / "transcripts" / "responses").glob("*.txt"))
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    said = sections(path)
    decoded = responses.decode(said["request"].encode(), WORDS.__getitem__)
    assert decoded.ask == msgspec.json.decode(said["ask"], type=Ask)
    events = [event(line) for line in said["events"].splitlines()]

    whole = decoded.encoder.json(events)
    assert whole.decode() == said["json"].rstrip("\n")
    Response.model_validate_json(whole)
    stream = b"".join(decoded.encoder.sse(event) for event in events).decode()
    assert stream == said["sse"] + "\n"
    for frame in stream.removesuffix("\n\n").split("\n\n"):
        EVENT.validate_json(frame.partition("\ndata: ")[2])


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 4
