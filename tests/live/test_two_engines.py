"""Two engines behind one gateway, each a process of its own; one is killed in the middle. Nothing is wrong or lost."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest

from stenograph import Gateway
from stenograph.core import JSON, NoteKind, Turn
from stenograph.engine.log import LoggedCall
from stenograph.gateway import Session
from tests.conftest import TOKENIZERS

SESSIONS, TURNS = 12, 5
SCRIPT = "seed = 11\nlongest = 24\ndelay = 0.004\n"


class Engine:
    def __init__(self, process: asyncio.subprocess.Process, url: str, log: Path) -> None:
        self.process = process
        self.url = url
        self.log = log

    def logged(self) -> dict[str, LoggedCall]:
        """A kill may leave half a line at the end."""
        lines = self.log.read_bytes().split(b"\n")[:-1] if self.log.exists() else []
        calls = [msgspec.json.decode(line, type=LoggedCall) for line in lines]
        return {call.request_id: call for call in calls}


@asynccontextmanager
async def engine(folder: Path, name: str, tokenizer: Path) -> AsyncIterator[Engine]:
    script, log = folder / "script.toml", folder / f"{name}.log"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "stenograph.engine.scripted_server", "--scale-out", "--tokenizer", str(tokenizer)]
    process = await asyncio.create_subprocess_exec(
        *command, "--script", str(script), "--log", str(log), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    try:
        ready = (await process.stdout.readline()).decode()
        yield Engine(process, ready.split()[1], log)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def rollout(session: Session, gateway: Gateway, begun: asyncio.Event) -> int:
    client = session.openai(max_retries=4)
    messages: list[JSON] = [{"role": "user", "content": f"I am {session.id}."}]
    for turn in range(TURNS):
        answer = await client.chat.completions.create(model=gateway.model, messages=messages)
        messages += [answer.choices[0].message.model_dump(exclude_none=True), {"role": "user", "content": f"{turn}?"}]
        if turn == 1:
            begun.set()
    return len(messages) // 2


def truth(turn: Turn, prompt: np.ndarray[tuple[int], np.dtype[np.int32]], engines: dict[str, Engine]) -> None:
    (part,) = turn.parts
    logged = engines[part.engine].logged()[turn.call.request_id]
    assert logged.prompt == prompt.tolist()
    assert list(logged.choices[0].ids) == turn.sampled.tolist()
    assert np.array_equal(np.array(logged.choices[0].logprobs, np.float32), turn.logprobs)


async def test_one_of_two_engines_is_killed(tmp_path: Path) -> None:
    folder = TOKENIZERS / "qwen2.5"
    if not folder.is_dir():
        pytest.skip("no ../shared/tokenizers")
    async with (
        engine(tmp_path, "first", folder) as first,
        engine(tmp_path, "second", folder) as second,
        Gateway(
            engine=[f"vllm={first.url}", f"vllm={second.url}"], tokenizer=str(folder), store=str(tmp_path / "store")
        ) as gateway,
    ):
        engines = {"vllm-0": first, "vllm-1": second}
        sessions = [gateway.session() for _ in range(SESSIONS)]
        begun = [asyncio.Event() for _ in sessions]
        rollouts = [
            asyncio.create_task(rollout(session, gateway, event))
            for session, event in zip(sessions, begun, strict=True)
        ]
        await asyncio.gather(*(event.wait() for event in begun))
        first.process.kill()
        assert await asyncio.gather(*rollouts) == [TURNS] * SESSIONS
        moved = 0
        for session in sessions:
            tree = session._live.tree
            assert len(tree.turns) == TURNS
            for turn in tree.turns.values():
                truth(turn, np.concatenate([tree.ids(turn.call.parent), turn.call.context]), engines)
            notes = [note for turn in tree.turns.values() for note in turn.notes]
            used = {part.engine for turn in tree.turns.values() for part in turn.parts}
            assert [note.kind for note in notes] == [NoteKind.ENGINE_MOVED] * (len(used) - 1)
            moved += len(notes)
            (sample,) = session.samples()
            assert {span.engine for span in sample.spans} == used
        assert 0 < moved < SESSIONS
        metrics = gateway._at_desk().metrics.text().decode()
        told = re.search(r'stenograph_notes_total\{kind="engine_moved"\} (\d+)', metrics)
        assert told
        assert int(told[1]) == moved
        health = await sessions[0].openai()._client.get("http://stenograph/health")
        assert {view["name"]: view["up"] for view in health.json()["engines"]} == {"vllm-0": False, "vllm-1": True}
