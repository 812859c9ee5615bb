"""What an engine tells beside its tokens: kept by content, named on its span, joined along the path. Never required."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stenograph import Gateway
from stenograph.core import Sample
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.engine.scripted_beside import routing, support
from stenograph.gateway import Session
from stenograph.sidecar import ROUTED_EXPERTS, SAMPLING_MASK, TOP_LOGPROBS, packed, unpacked
from stenograph.store.sqlite import SqliteReader
from tests.demo.acted import needs_model
from tests.engine.servers import serving

pytestmark = needs_model


@asynccontextmanager
async def gateway(engine: ScriptedEngine, **options: Any) -> AsyncIterator[Gateway]:
    async with (
        serving(engine, scale_out=True) as url,
        Gateway(engine=f"vllm={url}", tokenizer="smollm2", **options) as running,
    ):
        yield running


def telling(**more: Any) -> ScriptedEngine:
    return ScriptedEngine(Script(model="smollm2", vocab_size=49152, beside=True, chunk=3, **more))


async def talked(session: Session, turns: int, **asked: Any) -> None:
    client = session.openai()
    messages: list[Any] = []
    for place in range(turns):
        messages.append({"role": "user", "content": f"question {place}"})
        answer = await client.chat.completions.create(model="m", messages=messages, max_tokens=9, **asked)
        messages.append({"role": "assistant", "content": answer.choices[-1].message.content or ""})


def agrees(session: Session, sample: Sample) -> None:
    """Both follow from the ids: the engine has a row for every one that it computed, and so has the sample."""
    told = session.sidecars(sample)
    drawn = sample.tokens[sample.sampled == 1].tolist()
    last = sample.spans[-1].end - 1
    assert np.array_equal(told[ROUTED_EXPERTS]["experts"], routing(sample.tokens[:last].tolist()))
    assert told[SAMPLING_MASK]["lengths"].tolist() == [len(support(id)) for id in drawn]
    assert told[SAMPLING_MASK]["ids"].tolist() == [one for id in drawn for one in support(id)]


@pytest.mark.parametrize("n", [1, 2])
async def test_they_are_joined_along_every_path(n: int) -> None:
    async with gateway(telling()) as running:
        session = running.session()
        await talked(session, 4, n=n)
        found = session.samples(shared="every")
        assert len(found) >= n
        for sample in found:
            agrees(session, sample)


async def test_a_turn_under_two_versions_has_them_part_by_part() -> None:
    engine = telling(replies=[list(range(100, 109))], weight_version="1", delay=0.05)
    async with gateway(engine) as running:
        session = running.session()
        stream = await session.openai().chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hm"}], max_tokens=9, stream=True
        )
        await anext(stream)
        engine.weight_version = "2"
        async for _ in stream:
            pass
        (sample,) = session.samples()
        assert [span.weight_version for span in sample.spans] == ["1", "2"]
        agrees(session, sample)


async def test_they_are_on_disk_with_the_turn_and_named_by_what_they_hold(tmp_path: Path) -> None:
    async with gateway(telling(), store=str(tmp_path)) as running:
        session = running.session()
        await talked(session, 2, logprobs=True, top_logprobs=2)
        (sample,) = session.samples()
    with SqliteReader(tmp_path) as reader:
        for span in sample.spans:
            assert set(span.sidecars) == {SAMPLING_MASK, TOP_LOGPROBS, ROUTED_EXPERTS}
            for name in span.sidecars.values():
                body = reader.blob(name)
                assert body is not None
                assert packed(unpacked(body)) == (name, body)


async def test_without_them_nothing_is_missing() -> None:
    engine = ScriptedEngine(Script(model="smollm2", vocab_size=49152))
    async with gateway(engine) as running:
        session = running.session()
        await talked(session, 2)
        (sample,) = session.samples()
        assert [span.sidecars for span in sample.spans] == [{}, {}]
        assert session.sidecars(sample) == {}
