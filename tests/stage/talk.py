"""An answer of Chat Completions as a caller has it, whether it came as JSON or as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from stenograph.core import JSON, Value

DATA, DONE = b"data: ", b"[DONE]"


class Choice(Value):
    turn_id: str
    message: dict[str, JSON]
    """As an agent appends it to its messages."""
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: str | None
    stop_reason: JSON


class Answer(Value):
    status: int
    session_id: str | None
    turn_id: str | None
    """The header's."""
    choices: tuple[Choice, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    error: dict[str, JSON] | None = None
    complete: bool = False
    """It says that it succeeded: a whole JSON answer, or a stream with its last event."""


def heard(status: int, headers: Mapping[str, str], content: bytes) -> Answer:
    names = (headers.get("x-session-id"), headers.get("x-turn-id"))
    if status != 200:
        return Answer(status, *names, error=msgspec.json.decode(content)["error"])
    if headers["content-type"].startswith("application/json"):
        body = msgspec.json.decode(content)
        choices = tuple(_choice(choice) for choice in body["choices"])
        return Answer(status, *names, choices, tuple(body.get("prompt_token_ids", ())), complete=True)
    return _streamed(status, names, list(frames(content)))


def frames(content: bytes) -> Iterator[bytes]:
    """The payloads of a stream, whole ones only."""
    for frame in content.split(b"\n\n")[:-1]:
        if frame.startswith(DATA):
            yield frame.removeprefix(DATA)


def _choice(choice: dict[str, JSON]) -> Choice:
    return Choice(
        turn_id=choice["turn_id"],
        message=choice["message"],
        token_ids=tuple(choice.get("token_ids", ())),
        logprobs=_logprobs(choice),
        finish_reason=choice["finish_reason"],
        stop_reason=choice["stop_reason"],
    )


def _logprobs(choice: dict[str, JSON]) -> tuple[float, ...]:
    return tuple(entry["logprob"] for entry in (choice.get("logprobs") or {"content": ()})["content"])


def _streamed(status: int, names: tuple[str | None, str | None], payloads: list[bytes]) -> Answer:
    chunks = [msgspec.json.decode(payload) for payload in payloads if payload != DONE]
    error = next((chunk["error"] for chunk in chunks if "error" in chunk), None)
    said = [(chunk, choice) for chunk in chunks for choice in chunk.get("choices", ())]
    count = max((choice["index"] for _, choice in said), default=-1) + 1
    choices = tuple(_joined([choice for _, choice in said if choice["index"] == index]) for index in range(count))
    prompts = [chunk["prompt_token_ids"] for chunk, _ in said if "prompt_token_ids" in chunk]
    return Answer(
        status, *names, choices, tuple(prompts[0]) if prompts else (), error, complete=payloads[-1:] == [DONE]
    )


def _joined(parts: list[dict[str, JSON]]) -> Choice:
    message: dict[str, JSON] = {"role": "assistant", "content": None}
    for delta in (part["delta"] for part in parts):
        for name in ("content", "reasoning_content"):
            if delta.get(name) is not None:
                message[name] = (message.get(name) or "") + delta[name]
        for call in delta.get("tool_calls", ()):
            _add_call(message.setdefault("tool_calls", []), call)
    return Choice(
        turn_id=next(part["turn_id"] for part in parts if "turn_id" in part),
        message=message,
        token_ids=tuple(id for part in parts for id in part.get("token_ids", ())),
        logprobs=tuple(value for part in parts for value in _logprobs(part)),
        finish_reason=next((part["finish_reason"] for part in parts if part.get("finish_reason")), None),
        stop_reason=next((part["stop_reason"] for part in parts if "stop_reason" in part), None),
    )


def _add_call(calls: list[JSON], delta: dict[str, JSON]) -> None:
    if delta["index"] == len(calls):
        function = {"name": delta["function"]["name"], "arguments": ""}
        calls.append({"id": delta["id"], "type": "function", "function": function})
    calls[delta["index"]]["function"]["arguments"] += delta["function"]["arguments"]
