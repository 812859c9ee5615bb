"""What the adapter does beside the contract: it aborts by name, and asks for chunks that stay affordable."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from stenograph.core import JSON
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.engine.sglang import SglangEngine
from tests.engine.fakes import FakeIncremental, FakeSglang
from tests.engine.servers import listening
from tests.engine.streams import proven, request


async def test_what_is_left_early_is_aborted_by_its_name() -> None:
    fake = FakeSglang(ScriptedEngine(Script(replies=((5,) * 1000,), delay=0.01)))
    async with listening(fake.application) as url:
        sglang = SglangEngine(url)
        await sglang.start()
        async with aclosing(sglang.generate(request(n=2, max_tokens=1000))) as deltas:
            heard: set[int] = set()
            while len(heard) < 2:
                heard.add((await anext(deltas)).choice)
        await sglang.close()
    rids = [body["rid"] for body in fake.sent if body["rid"].startswith("r1-")]
    assert len(rids) == 2
    assert sorted(fake.aborted) == sorted(rids)


async def test_no_rid_is_used_twice() -> None:
    """Two seconds behind a stream's end SGLang aborts whatever bears its `rid` by then."""
    fake = FakeSglang(ScriptedEngine(Script(replies=((5,),))))
    async with listening(fake.application) as url:
        sglang = SglangEngine(url)
        await sglang.start()
        for _ in range(2):
            await proven(sglang.generate(request(max_tokens=1)), request(max_tokens=1))
        await sglang.close()
    rids = [body["rid"] for body in fake.sent]
    assert len(set(rids)) == len(rids)
    assert not fake.aborted


@pytest.mark.parametrize(("kind", "interval"), [(FakeSglang, 16), (FakeIncremental, 1)])
async def test_chunks_that_repeat_all_before_them_are_asked_for_seldom(kind: type[FakeSglang], interval: int) -> None:
    fake = kind(ScriptedEngine(Script(replies=((5,),))))
    async with listening(fake.application) as url:
        sglang = SglangEngine(url)
        await sglang.start()
        await proven(sglang.generate(request(max_tokens=1)), request(max_tokens=1))
        await sglang.close()
    assert fake.sent[-1]["sampling_params"]["stream_interval"] == interval


async def test_an_older_release_has_the_same_facts_under_other_names() -> None:
    class Older(FakeSglang):
        def facts(self) -> dict[str, JSON]:
            return {path.replace("/", "/get_", 1): told for path, told in super().facts().items()}

    async with listening(Older(ScriptedEngine(Script(model="policy"))).application) as url:
        sglang = SglangEngine(url)
        assert (await sglang.start()).model == "policy"
        await sglang.close()
