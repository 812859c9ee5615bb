from __future__ import annotations

import logging
from typing import Any

import msgspec
import numpy as np
import pytest

from stenograph.core import Attempt
from stenograph.integrations.openrlhf.outcome import Failure, Outcome, failed, judged, said
from stenograph.store.store import StoredSession
from tests.export.trees import FACTS
from tests.integrations.openrlhf.trainer import HfTokenizer


class FromServer(Exception):
    """As the SDKs raise them."""

    def __init__(self, status: int, code: str | None = None) -> None:
        super().__init__(f"status {status}")
        self.status_code, self.code = status, code


class APITimeoutError(Exception):
    """openai's and anthropic's are no `TimeoutError`."""


def wrapped(error: Exception) -> Exception:
    """As a framework between the agent and its client may."""
    try:
        raise RuntimeError("the step failed") from error
    except RuntimeError as around:
        return around


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (KeyError("x"), Failure.AGENT),
        (FromServer(400), Failure.AGENT),
        (FromServer(400, "context_length_exceeded"), Failure.CONTEXT),
        (FromServer(502), Failure.ENGINE),
        (TimeoutError(), Failure.TIMEOUT),
        (APITimeoutError(), Failure.TIMEOUT),
    ],
)
def test_who_is_to_blame(error: Exception, failure: Failure) -> None:
    grouped = ExceptionGroup("a task group's", [ValueError("another"), wrapped(error)])
    assert [failed(one).failure for one in (error, wrapped(error), grouped)] == [failure] * 3


@pytest.mark.parametrize("reward", [None, float("nan"), float("inf"), "much", [1.0, 2.0]])
def test_a_reward_that_is_none(reward: Any) -> None:
    assert said({"reward": reward}, {}).failure is Failure.NO_REWARD


def test_nothing_returned_is_no_reward_and_a_list_is_a_mistake() -> None:
    assert said(None, {}).failure is Failure.NO_REWARD
    assert said([{"reward": 1.0}], {}).failure is Failure.AGENT


@pytest.mark.parametrize("reward", [2, 2.0, np.float32(2), np.array(2.0)])
def test_numbers_of_every_house(reward: Any) -> None:
    assert said({"reward": reward}, {}) == Outcome(reward=2.0, scores=2.0)


def test_only_the_declared_logs(caplog: pytest.LogCaptureFixture) -> None:
    given = {"steps": 3, "broken": None, "extra": 1}
    with caplog.at_level(logging.WARNING):
        told = said({"reward": 1, "scores": 0, "extra_logs": given}, {"steps", "broken", "absent"})
    assert told == Outcome(reward=1.0, scores=0.0, extra_logs={"steps": 3.0})
    assert "extra_logs of extra are left out" in caplog.text


@pytest.mark.parametrize(
    ("attempts", "failure"),
    [
        ({}, Failure.NO_CALLS),
        ({Attempt.REFUSED: 1}, Failure.NO_CALLS),
        ({Attempt.CONTEXT_OVERFLOW: 1}, Failure.CONTEXT),
        ({Attempt.ENGINE_ERROR: 2}, Failure.ENGINE),
    ],
)
def test_an_agent_that_keeps_a_failure_to_itself(attempts: dict[Attempt, int], failure: Failure) -> None:
    record = StoredSession(msgspec.structs.replace(FACTS, attempts=attempts), ())
    assert judged(Outcome(reward=1.0), record, "", HfTokenizer()).failure is failure
