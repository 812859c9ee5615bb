"""Law 2: evidence that cannot be trusted ends the call, whatever is wrong with it, and nothing of it is kept."""

from __future__ import annotations

import pytest

from stenograph.engine.raw import MISREPORTS
from stenograph.engine.script import FaultKind
from stenograph.store.memory import MemoryStore
from tests.laws.record import stored_turns
from tests.stage.models import Model
from tests.stage.stage import Stage, user


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("lie", sorted(MISREPORTS))
async def test_a_lie_ends_the_call(model: Model, lie: FaultKind, stream: bool) -> None:
    async with Stage(model, MemoryStore()) as stage:
        with stage.watched.faulty(lie):
            answer = await stage.say("s", [user("hello")], n=2, stream=stream)
        assert answer.error is not None
        assert answer.error["code"] == "engine_evidence_unusable"
        assert answer.status == (200 if answer.choices else 502)
        assert not answer.complete
        assert [choice.finish_reason for choice in answer.choices] == [None] * len(answer.choices)
        assert stored_turns(stage, "s") == []
        assert (await stage.get("/sessions/s"))["attempts"]["engine_error"] == 1
        assert (await stage.say("s", [user("hello")])).complete
