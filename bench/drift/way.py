"""What every way of recording a rollout has to do: answer an agent's calls, then hand over training samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stenograph.core import JSON, Conversation, Value


class Refused(Exception):
    """The call got an error instead of an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Sent(Value):
    """One prompt, as it went to the engine."""

    ids: Sequence[int]
    spans: Sequence[tuple[int, int]]
    """Which of its ids were kept as they had been sampled: (start, end), in order."""
    meant: Conversation
    """What the template would have to write: the messages of the call, with what was restored in them."""


class Trained(Value):
    """One sample, as a trainer has it: three columns of one length."""

    tokens: Sequence[int]
    mask: Sequence[bool]
    """What is trained."""
    logprobs: Sequence[float]


class Way(Protocol):
    async def ask(self, body: dict[str, JSON], *, again: bool) -> list[dict[str, JSON]]:
        """The messages that are answered, one a choice. `again`: the SDK's repeat of a call that was not answered."""

    def sent(self) -> list[Sent]: ...

    def samples(self) -> list[Trained]: ...
