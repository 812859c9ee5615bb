"""How an episode went: what the agent said of it, or why it is not trained."""

from __future__ import annotations

import enum
import functools
import logging
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from stenograph.core import PROMPT_ROLE, Attempt, Value
from stenograph.store.store import StoredSession

log = logging.getLogger("stenograph")
OVERFLOW = "context_length_exceeded"
SERVERS_FAULT = 500
WORD = "stenograph"
"""A message, to see what the template writes behind one."""


class Failure(enum.StrEnum):
    """Why a sample is all mask. Each is counted under its name."""

    AGENT = "agent_error"
    """`run_agent` raised, or returned what is no mapping."""
    ENGINE = "engine_error"
    """It raised what a failed call had told it, and the engine (or we) were at fault."""
    CONTEXT = "context_overflow"
    """Likewise: a prompt left no room to answer."""
    TIMEOUT = "timeout"
    NO_CALLS = "no_calls"
    """Nothing was sampled, and nobody raised."""
    NO_REWARD = "no_reward"
    """None, or no finite number."""
    TEMPLATED = "templated_twice"
    """The prompt came out of the chat template already, and was sent as a message."""
    IMAGES = "images"


class Outcome(Value, kw_only=True):
    failure: Failure | None = None
    detail: str = ""
    reward: float = 0.0
    """Of a failure 0.0: upstream takes a group's mean over all its samples, and has no way to leave one out."""
    scores: float = 0.0
    extra_logs: dict[str, float] = msgspec.field(default_factory=dict)


def said(result: object, declared: Collection[str]) -> Outcome:
    """What `run_agent` returned: `{"reward": …, "scores"?: …, "extra_logs"?: {…}}`."""
    if result is None:
        result = {}
    if not isinstance(result, Mapping):
        detail = f"run_agent returned a {type(result).__name__}, and no mapping"
        return Outcome(failure=Failure.AGENT, detail=detail)
    reward = _number(result.get("reward"))
    if reward is None:
        return Outcome(failure=Failure.NO_REWARD, detail=f"its reward is {result.get('reward')!r}")
    scores = _number(result.get("scores"))
    logs = _logs(result.get("extra_logs") or {}, declared)
    return Outcome(reward=reward, scores=reward if scores is None else scores, extra_logs=logs)


def failed(error: BaseException) -> Outcome:
    words = f"{type(error).__name__}: {error}".encode(errors="backslashreplace").decode()
    return Outcome(failure=_blame(error), detail=words)


def judged(outcome: Outcome, record: StoredSession, prompt: object, hf_tokenizer: Any) -> Outcome:
    """The record's own word on it."""
    if outcome.failure is not None:
        return outcome
    if not record.calls:
        return _silent(record.facts.attempts)
    if isinstance(prompt, str) and _templated_twice(prompt.strip(), record, hf_tokenizer):
        detail = "the prompt is templated already: leave OpenRLHF's data.apply_chat_template off"
        return Outcome(failure=Failure.TEMPLATED, detail=detail)
    return outcome


def _silent(attempts: Mapping[Attempt, int]) -> Outcome:
    """An agent may keep to itself why its calls failed."""
    tried = ", ".join(f"{count} {attempt}" for attempt, count in attempts.items())
    reasons = {Attempt.CONTEXT_OVERFLOW: Failure.CONTEXT, Attempt.ENGINE_ERROR: Failure.ENGINE}
    why = next((reason for attempt, reason in reasons.items() if attempt in attempts), Failure.NO_CALLS)
    return Outcome(failure=why, detail=f"no call was answered ({tried or 'none was made'})")


def _templated_twice(prompt: str, record: StoredSession, hf_tokenizer: Any) -> bool:
    calls = (committed.turns[0].call for committed in record.calls)
    messages = (message for call in calls for message in call.messages if message.role != PROMPT_ROLE)
    if not prompt or not any(prompt in (message.content or "") for message in messages):
        return False
    conversation = [{"role": "user", "content": WORD}]
    written: str = hf_tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
    begins_reply = written.rpartition(WORD)[2].strip()
    return begins_reply != "" and prompt.endswith(begins_reply)


def _blame(error: BaseException) -> Failure:
    """By what was raised, or what that was raised from: the SDKs' errors have a status, and OpenAI's a code."""
    for one in _chain(error):
        status = getattr(one, "status_code", None)
        if getattr(one, "code", None) == OVERFLOW:
            return Failure.CONTEXT
        if isinstance(status, int) and status >= SERVERS_FAULT:
            return Failure.ENGINE
        if isinstance(one, TimeoutError) or "Timeout" in type(one).__name__:
            return Failure.TIMEOUT
    return Failure.AGENT


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        if isinstance(error, BaseExceptionGroup):
            for one in error.exceptions:
                yield from _chain(one)
        error = error.__cause__ or error.__context__


def _logs(given: Mapping[str, Any], declared: Collection[str]) -> dict[str, float]:
    """Nothing but what is declared: upstream joins a batch's logs by name, and fails where a sample lacks one."""
    for name in given.keys() - set(declared):
        _warn_of(name)
    numbers = {name: _number(given.get(name)) for name in declared}
    return {name: number for name, number in numbers.items() if number is not None}


@functools.cache
def _warn_of(name: str) -> None:
    """Once: each of a run's rollouts is the same there."""
    log.warning("extra_logs of %s are left out: name them in `extra_log_defaults`", name)


def _number(value: Any) -> float | None:
    """Python's, numpy's or torch's, of one element."""
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return number if math.isfinite(number) else None
