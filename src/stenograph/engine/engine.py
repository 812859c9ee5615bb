"""What the way of a request needs of an engine: ids in, a checked stream of ids and logprobs out.

Adapters raise only `EngineError`s (and `CallerError`s for what the engine refuses as the caller's fault); every lower
exception is translated once, in the adapter. `evidence.checked` stands between every adapter and the rest of the
house, so nothing behind it needs to doubt a `Delta`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, runtime_checkable

from stenograph.core import Delta, EngineInfo, Request


class Engine(Protocol):
    async def start(self) -> EngineInfo:
        """Connects (or loads), asks what there is to know, and returns it. `EngineUnavailable` says what is wrong."""

    def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Streams deltas of all `request.n` choices, interleaved, in order within a choice.

        Closing the iterator before its end (`aclose`, cancellation) aborts the generation on the engine: no adapter
        leaves one running for nobody.
        """

    async def healthy(self) -> bool: ...

    async def close(self) -> None: ...


@runtime_checkable
class Holding(Protocol):
    """An engine that can keep a generation where it is: nothing is lost, and the stream is silent meanwhile."""

    async def hold(self) -> bool:
        """False: this server has no way to, after all; its generations have to be broken off."""

    async def release(self) -> None: ...

    async def held(self) -> bool:
        """Whoever holds it: a trainer may do so behind our back."""
