"""Bytes in, bytes out. Each file of `tests/transcripts/chat` is one call: what the agent sends, the `Ask` it means, the
events of the answer, and what the agent gets, as JSON and as a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from openai.types.chat import ChatCompletion

from stenograph.core import Ask, Closed, Done, Event, Opened, Piece
from stenograph.wire import chat

TRANSCRIPTS = sorted((Path(__file__).resolve().parents[1] / "transcripts" / "chat").glob("*.txt"))
EVENTS: dict[str, type[Event]] = {"opened": Opened, "piece": Piece, "closed": Closed, "done": Done}
WORDS = {1: b"Hello", 2: b" wor", 3: b"ld", 4: b"\xf0\x9f", 5: b"\x98\x80", 9: b"<|im_end|>"}


def sections(path: Path) -> dict[str, str]:
    _, *parts = path.read_text().split("\n=== ")
    named = (part.partition("\n") for part in parts)
    return {name: text for name, _, text in named}


def event(line: str) -> Event:
    ((kind, value),) = msgspec.json.decode(line).items()
    return msgspec.convert(value, EVENTS[kind], dec_hook=_array)


def _array(_: type, numbers: list[Any]) -> Any:
    return np.array(numbers, np.int32 if all(isinstance(number, int) for number in numbers) else np.float32)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    said = sections(path)
    decoded = chat.decode(said["request"].encode(), WORDS.__getitem__)
    assert decoded.ask == msgspec.json.decode(said["ask"], type=Ask)
    events = [event(line) for line in said["events"].splitlines()]

    whole = decoded.encoder.json(events)
    assert whole.decode() == said["json"].rstrip("\n")
    ChatCompletion.model_validate_json(whole)
    assert b"".join(decoded.encoder.sse(event) for event in events).decode() == said["sse"] + "\n"


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 5
