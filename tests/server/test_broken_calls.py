"""A call that breaks off, or is no JSON: content for whoever gets it whole; a call for whoever has heard it begin."""

from __future__ import annotations

import pytest

from stenograph.core import JSON
from stenograph.engine.script import Script
from stenograph.store.memory import MemoryStore
from tests.stage.models import LOOK, Model, model
from tests.stage.stage import Stage, user

BROKEN = '<tool_call>\n{"name": "look", "arguments": {"city": }}\n</tool_call>'
CUT = '<tool_call>\n{"name": "look", "arguments": {"city": "Par'


@pytest.fixture
def qwen() -> Model:
    return model("qwen2.5")


async def said(qwen: Model, reply: str, **fields: JSON) -> tuple[dict[str, JSON], str | None, dict[str, int]]:
    async with Stage(qwen, MemoryStore(), Script(replies=(reply, "Well."))) as stage:
        answer = await stage.say("s", [user("look")], tools=[LOOK], **fields)
        (choice,) = answer.choices
        await stage.say("s", [user("look"), choice.message, user("again")], tools=[LOOK])
        told = await stage.get("/sessions/s")
        assert told["forks"] == {}
        return choice.message, choice.finish_reason, told["notes"]


@pytest.mark.parametrize("reply", [BROKEN, CUT])
async def test_whole_it_is_content(qwen: Model, reply: str) -> None:
    """As users of vLLM expect."""
    message, finish, notes = await said(qwen, reply)
    assert message["content"] == reply
    assert not message.get("tool_calls")
    assert (finish, notes) == ("stop", {"tool_call_unparsed": 1})


async def test_streamed_it_stays_the_call_that_was_told(qwen: Model) -> None:
    message, finish, notes = await said(qwen, CUT, stream=True)
    (call,) = message["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == ("look", '{"city": "Par')
    assert finish == "tool_calls"
    assert notes == {"tool_call_unparsed": 1}
