"""What is compared, each in a process of its own, all before the same kind of engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bench.client import Client
from bench.processes import Server, serving
from bench.talk import TOKENIZER
from stenograph.core import Value

CHAT = "/v1/chat/completions"


class Contender(Value):
    name: str
    server: Server
    """The one that agents call, and whose CPU is counted."""
    records: bool = False

    def path(self, session: str) -> str:
        return f"/s/{session}{CHAT}" if self.records else CHAT


@asynccontextmanager
async def contenders(folder: Path, engine_takes: float) -> AsyncIterator[tuple[Contender, ...]]:
    """`folder`: for the store and logs. Stenograph is what users get: SQLite on disk, `synchronous=FULL`, checks on.
    `engine_takes`: seconds a call."""
    store = folder / "store"
    async with (
        serving("bench.engine", engine_takes, errors=folder / "engine.log") as engine,
        serving("bench.floor", engine.url, errors=folder / "floor.log") as floor,
        serving(
            "stenograph", "serve", "--engine", f"vllm={engine.url}", "--tokenizer", TOKENIZER,
            "--port", 0, "--store", store, errors=folder / "stenograph.log",
        ) as gateway,
    ):  # fmt: skip
        yield (
            Contender("direct", engine),
            Contender("floor", floor),
            Contender("stenograph", gateway, records=True),
        )


class _Session(msgspec.Struct):
    turns: int
    branches: int
    forks: dict[str, int]


async def check_recorded(contender: Contender, session: str, turns: int) -> None:
    """A recorder that was fast because it forked, or did not record, would not be worth measuring."""
    async with Client(contender.server.url) as client:
        found = msgspec.json.decode(await client.get(f"/sessions/{session}"), type=_Session)
    if found != _Session(turns, 1, {}):
        raise RuntimeError(f"{contender.name} recorded {found} where there were {turns} turns, one after the other")
