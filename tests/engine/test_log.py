from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stenograph.core import Finish
from stenograph.engine.log import EngineLog, Transcript
from tests.engine.streams import request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "engine.jsonl"


@pytest.fixture
def log(path: Path) -> Iterator[EngineLog]:
    log = EngineLog(path)
    yield log
    log.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_call_is_written_when_its_last_choice_is_finished(path: Path, log: EngineLog) -> None:
    transcript = Transcript(log, request((1, 2), n=2, id="r7", temperature=0.5))
    transcript.heard(0, [5], [-0.5])
    transcript.heard(1, [7], [0.0])
    transcript.heard(0, [6], [-1.5])
    transcript.finished(0, Finish("stop", 6))
    assert not path.exists()
    transcript.finished(1, Finish("length"))
    [line] = lines(path)
    assert line.pop("at") > 0
    assert line.pop("sampling")["temperature"] == 0.5
    assert line == {
        "request_id": "r7",
        "session_id": "session",
        "prompt": [1, 2],
        "n": 2,
        "choices": [
            {"ids": [5, 6], "logprobs": [-0.5, -1.5], "finish_reason": "stop", "stop_reason": 6},
            {"ids": [7], "logprobs": [0.0], "finish_reason": "length", "stop_reason": None},
        ],
        "aborted": False,
    }
    transcript.close(aborted=True)
    assert len(lines(path)) == 1


def test_a_call_that_broke_off_is_written_as_far_as_it_came(path: Path, log: EngineLog) -> None:
    transcript = Transcript(log, request(n=2))
    transcript.heard(1, [7], [None])
    transcript.close(aborted=True)
    [line] = lines(path)
    assert line["aborted"]
    assert [choice["ids"] for choice in line["choices"]] == [[], [7]]
    assert [choice["finish_reason"] for choice in line["choices"]] == [None, None]
    assert line["choices"][1]["logprobs"] == [None]


def test_a_log_is_continued(path: Path) -> None:
    for _ in range(2):
        log = EngineLog(path)
        Transcript(log, request()).close(aborted=False)
        log.close()
    assert len(lines(path)) == 2


def test_no_path_is_no_log(tmp_path: Path) -> None:
    Transcript(EngineLog(None), request()).close(aborted=False)
    assert list(tmp_path.iterdir()) == []
