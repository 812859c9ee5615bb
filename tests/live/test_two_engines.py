"""Two engines behind one gateway, each a process of its own; one is killed in the middle. Nothing is wrong or lost."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest

from stenograph import Gateway
from stenograph.core import JSON, NoteKind, Turn
from stenograph.engine.script import Script
from stenograph.gateway import Session
from tests.conftest import TOKENIZERS
from tests.live.processes import Engine, engine

SESSIONS, TURNS = 12, 5
SCRIPT = Script(seed=11, longest=24, delay=0.004)


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
        engine(tmp_path, "first", folder, SCRIPT) as first,
        engine(tmp_path, "second", folder, SCRIPT) as second,
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
