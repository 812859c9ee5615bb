"""verifiers' train client, unchanged, against a gateway: it keeps a record of its own, and so do we. They are equal."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import uvicorn
from starlette.types import ASGIApp

from stenograph.core import JSON
from stenograph.engine.script import Script
from stenograph.store.memory import MemoryStore
from tests.conftest import TOKENIZERS
from tests.laws.record import Record, sampled
from tests.live.consumers.installed import python, run
from tests.stage.models import Model, model
from tests.stage.stage import Stage

pytestmark = pytest.mark.live
VERIFIERS = "verifiers-0.4.0"
FAMILY = "qwen3"
"""verifiers renders it by itself, without a template, and drops reasoning where a user speaks again."""
REPLIES = (
    '<think>\nI should look.\n</think>\n\n<tool_call>\n{"name": "look", "arguments": {"city": "Paris"}}\n</tool_call>',
    "It rains, therefore take an umbrella.",
    "<think>\nstill\n</think>\n\nIt rains still.",
    "You are welcome.",
)


@pytest.fixture(scope="module")
def cast() -> Model:
    return model(FAMILY)


async def test_both_records_are_one(cast: Model) -> None:
    """Two rollouts at once: of one the session is named in the path, of the other by verifiers' own header."""
    python(VERIFIERS)  # is there
    stage = Stage(cast, MemoryStore(), Script(replies=REPLIES, cut=1.0, model="policy"))
    async with stage, served(stage.app) as url:
        in_path, in_header = await asyncio.gather(played(f"{url}/s/rollout/v1"), played(f"{url}/v1"))
        await require_one_record(stage, "rollout", in_path)
        await require_one_record(stage, in_header["session"], in_header)


async def require_one_record(stage: Stage, session: str, told: JSON) -> None:
    record = Record(stage, session)
    assert [message["role"] for message in told["messages"]].count("assistant") == len(REPLIES) == len(record.turns)
    for turn in record.turns.values():
        logged = record.logged(turn.call)
        assert (record.prompt(turn.call), sampled(turn)) == (logged.prompt, list(logged.choices[0].ids))
    samples = (await stage.get(f"/sessions/{session}/samples?shared=every"))["samples"]
    columns = ("tokens", "sampled", "logprobs")
    assert told["branches"] == [{name: sample[name] for name in columns} for sample in samples]
    assert len(samples) == 3  # tool results go on with the turn; a user's next word drops what was thought before it


async def played(base_url: str) -> JSON:
    program = Path(__file__).parent / "programs" / "rollout.py"
    return msgspec.json.decode(await run(VERIFIERS, program, base_url, str(TOKENIZERS / FAMILY)))


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error"))
        running = asyncio.create_task(server.serve([door]))
        try:
            yield f"http://127.0.0.1:{door.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running
