"""How far the rollouts are: a bar where somebody watches, a line a rollout where nobody does."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import TextIO

WIDTH = 24
TICK_SECONDS = 0.2
ERASE_LINE = "\r\x1b[K"


class Progress:
    def __init__(self, rollouts: int, questions: int, stream: TextIO) -> None:
        """`questions`: of all rollouts together, by which the bar grows."""
        self.turns = 0
        self.tokens = 0
        self._rollouts = rollouts
        self._questions = questions
        self._solved = 0
        self._finished = 0
        self._stream = stream
        self._watched = stream.isatty()
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def answered(self, turns: int, tokens: int) -> None:
        self.turns += turns
        self.tokens += tokens

    def solved(self) -> None:
        self._solved += 1

    def finished(self) -> None:
        self._finished += 1
        if not self._watched:
            print(self.words(), file=self._stream, flush=True)

    def words(self) -> str:
        speed = f"{self.tokens / max(self.seconds, 0.001):.0f} tokens/s"
        done = f"{self._finished}/{self._rollouts} rollouts"
        return f"{done} · {self.turns} turns · {self.tokens:,} tokens · {speed} · {self.seconds:.0f} s"

    def bar(self) -> str:
        filled = WIDTH * self._solved // self._questions
        return "█" * filled + "░" * (WIDTH - filled)

    @contextlib.asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Drawn anew all the time, so that one sees it live while a small machine reads its prompts."""
        ticking = asyncio.ensure_future(self._tick())
        try:
            yield
        finally:
            ticking.cancel()
            self._draw(end="\n")

    async def _tick(self) -> None:
        while True:
            self._draw()
            await asyncio.sleep(TICK_SECONDS)

    def _draw(self, end: str = "") -> None:
        if self._watched:
            print(f"{ERASE_LINE}{self.bar()}  {self.words()}", end=end, file=self._stream, flush=True)
