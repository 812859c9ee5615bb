"""Atropos' own `run-api`, a process that dies, and a trainer that fetches from it: it gets what was recorded."""

from __future__ import annotations

import asyncio
import random
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from stenograph.engine.script import Script
from stenograph.integrations.atropos import sender
from stenograph.integrations.atropos.trajectories import Trajectories
from tests.conftest import NO_TOKENIZERS, ROOT, TOKENIZERS
from tests.integrations.atropos.forwarding import SIZE, key, recorded
from tests.integrations.atropos.groups import group, number_of
from tests.live.consumers.installed import python
from tests.live.processes import engine, killed, process, said

pytestmark = pytest.mark.live
TRAINER = {
    "wandb_group": "g",
    "wandb_project": "p",
    "batch_size": SIZE,
    "max_token_len": 4096,
    "num_steps": 10**6,
    "checkpoint_dir": "",
    "save_checkpoint_interval": 0,
    "starting_step": 0,
}


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "LONGEST_SECONDS", 0.2)
    monkeypatch.setattr(sender, "LOOK_SECONDS", 0.05)


class RunApi:
    """The same address in each of its lives."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        serve = f"import uvicorn; uvicorn.run('atroposlib.api:app', host='127.0.0.1', port={self.port})"
        self._process = await asyncio.create_subprocess_exec(
            python("atropos"), "-c", serve, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        assert self._process.stderr is not None
        while b"Uvicorn running" not in (line := await self._process.stderr.readline()):
            assert line, "it did not start"

    async def die(self) -> None:
        if self._process is not None:
            await killed(self._process)
            self._process = None


class Trainer:
    """Fetches when it is told to."""

    def __init__(self, api: RunApi, http: aiohttp.ClientSession) -> None:
        self.groups: list[dict[str, Any]] = []
        self._api = api
        self._http = http

    async def register(self) -> None:
        """By its first fetch the API knows that it has started."""
        async with self._http.post(f"{self._api.url}/register", json=TRAINER) as answer:
            assert answer.status == 200
        assert await self.fetch() is None

    async def fetch(self) -> list[dict[str, Any]] | None:
        async with self._http.get(f"{self._api.url}/batch") as answer:
            batch: list[dict[str, Any]] | None = (await answer.json())["batch"]
        self.groups += batch or ()
        return batch

    async def fetch_until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(90):
            while not done():
                if await self.fetch() is None:
                    await asyncio.sleep(0.02)


@asynccontextmanager
async def trained() -> AsyncIterator[tuple[RunApi, Trainer]]:
    api = RunApi()
    await api.start()
    try:
        async with aiohttp.ClientSession() as http:
            trainer = Trainer(api, http)
            await trainer.register()
            yield api, trainer
    finally:
        await api.die()


def to(api: RunApi, spool: Path) -> Trajectories:
    return Trajectories(api.url, spool=spool, group_size=SIZE, max_token_length=4096)


async def test_groups_arrive_once_as_they_are(tmp_path: Path) -> None:
    async with trained() as (api, trainer), to(api, tmp_path) as sending:
        wanted = [group(number, length=50 * number) for number in range(1, 8)]
        await sending.send(wanted[:3])
        for one in wanted[3:]:
            await sending.send(one)
        await sending.drained()
        await trainer.fetch_until(lambda: len(trainer.groups) == len(wanted))
        by_number = {number_of(one): one for one in trainer.groups}
        for one in wanted:
            assert {field: by_number[number_of(one)][field] for field in one} == one
            assert by_number[number_of(one)]["env_id"] == 0


async def test_the_api_dies_with_what_it_holds_and_none_is_lost(tmp_path: Path) -> None:
    """Each time some are fetched, some are in batches that are formed and not handed out, and some come too late."""
    every = set(range(1, 25))
    async with trained() as (api, trainer), to(api, tmp_path) as sending:
        for number in sorted(every):
            await sending.send(group(number))
            if number % 8 == 4:
                await sending.drained()
                await trainer.fetch()
            if number % 8 == 0:
                await api.die()
                await api.start()
                await trainer.register()
        await sending.drained()
        await trainer.fetch_until(lambda: {number_of(one) for one in trainer.groups} == every)
        assert all({field: one[field] for field in group(1)} == group(number_of(one)) for one in trainer.groups)


async def test_we_die_and_come_back_and_none_is_lost_or_made_up(tmp_path: Path) -> None:
    chance = random.Random(5)
    async with trained() as (api, trainer):
        worker = ("tests.integrations.atropos.forwarding", api.url, str(tmp_path))
        for life in range(3):
            async with process(*worker, f"life-{life}") as doomed:
                for _ in range(chance.randint(1, 4)):
                    await said(doomed)
                await asyncio.sleep(chance.random() / 10)
                await killed(doomed)
        async with process(*worker, "last", "2") as last:
            assert await asyncio.wait_for(last.wait(), 90) == 0
        wanted = recorded(tmp_path / "store")
        await trainer.fetch_until(lambda: {key(one) for one in trainer.groups} == set(wanted))
        for one in trainer.groups:
            assert {field: one[field] for field in wanted[key(one)]} == wanted[key(one)]
        assert max(Counter(key(one) for one in trainer.groups).values()) <= 2


async def test_the_page_for_those_who_come_from_there(tmp_path: Path) -> None:
    tokenizer = TOKENIZERS / "qwen2.5"
    if not tokenizer.is_dir():
        pytest.skip(NO_TOKENIZERS)
    page = (ROOT / "docs" / "from" / "atropos-api.md").read_text()
    text = page.partition("```python\nimport asyncio")[2].partition("```")[0]
    async with trained() as (api, trainer), engine(tmp_path, "vllm", tokenizer, Script()) as sampling:
        for said_there, here in (
            ("http://localhost:8000", api.url),
            ("http://127.0.0.1:8100", sampling.url),
            ('store="runs/a"', f'store="runs/a", tokenizer="{tokenizer}"'),
            ("group_size=4", f"group_size={SIZE}"),
            (", 4)", f", {SIZE})"),
        ):
            assert said_there in text
            text = text.replace(said_there, here)
        (tmp_path / "page.py").write_text(f"import asyncio{text}")
        run = await asyncio.create_subprocess_exec(sys.executable, "page.py", cwd=tmp_path)
        assert await asyncio.wait_for(run.wait(), 90) == 0
        wanted = recorded(tmp_path / "runs" / "a")
        assert list(wanted) == ["task-0", "task-1", "task-2"]
        await trainer.fetch_until(lambda: len(trainer.groups) == len(wanted))
        assert {key(one): one["tokens"] for one in trainer.groups} == {
            name: one["tokens"] for name, one in wanted.items()
        }
