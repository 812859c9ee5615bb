"""An answer of Completions or of `/inference/v1/generate` as a caller has it, from JSON or from a stream."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stenograph.core import JSON
from tests.stage.talk import DONE, Answer, Choice, frames

Part = dict[str, JSON]
"""A choice of a JSON answer, or of one chunk."""


def heard_plain(status: int, headers: Mapping[str, str], content: bytes) -> Answer:
    names = (headers.get("x-session-id"), headers.get("x-turn-id"))
    if status != 200:
        return Answer(status, *names, error=msgspec.json.decode(content)["error"])
    if headers["content-type"].startswith("application/json"):
        bodies, complete = [msgspec.json.decode(content)], True
    else:
        payloads = list(frames(content))
        bodies = [msgspec.json.decode(payload) for payload in payloads if payload != DONE]
        complete = payloads[-1:] == [DONE]
    error = next((body["error"] for body in bodies if "error" in body), None)
    parts = [part for body in bodies for part in body.get("choices", ())]
    count = max((part["index"] for part in parts), default=-1) + 1
    choices = tuple(_joined([part for part in parts if part["index"] == index]) for index in range(count))
    prompts = [holder["prompt_token_ids"] for holder in (*bodies, *parts) if "prompt_token_ids" in holder]
    assert all(prompt == prompts[0] for prompt in prompts)
    return Answer(status, *names, choices, tuple(prompts[0]) if prompts else (), error, complete=complete)


def _joined(parts: list[Part]) -> Choice:
    text = "".join(part["text"] for part in parts) if any("text" in part for part in parts) else None
    return Choice(
        turn_id=next(part["turn_id"] for part in parts if "turn_id" in part),
        message={"content": text},
        token_ids=tuple(id for part in parts for id in part.get("token_ids") or ()),
        logprobs=tuple(value for part in parts for value in _logprobs(part)),
        finish_reason=next((part["finish_reason"] for part in parts if part["finish_reason"]), None),
        stop_reason=next((part["stop_reason"] for part in parts if part.get("stop_reason") is not None), None),
    )


def _logprobs(part: Part) -> list[float]:
    """With a look at the ids that stand beside them: both tell of the same tokens."""
    evidence = part.get("logprobs") or {"content": []}
    if "content" in evidence:
        named = [(f"token_id:{entry['token_id']}", entry["token"], entry["logprob"]) for entry in evidence["content"]]
        tokens, values = [token for _, token, _ in named], [value for _, _, value in named]
        assert all(id == token for id, token, _ in named)
    else:
        tokens, values = evidence["tokens"], evidence["token_logprobs"]
    if part.get("logprobs"):
        assert tokens == [f"token_id:{id}" for id in part["token_ids"]]
    return values
