"""Replies that are held to a form, over HTTP: as the family writes it, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from stenograph.core import JSON, GuideKind
from stenograph.engine.script import Script
from stenograph.store.memory import MemoryStore
from tests.laws.checks import check_session
from tests.stage import models
from tests.stage.models import LOOK
from tests.stage.stage import Stage, user

SCHEMA: JSON = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
LISTEN: JSON = {"type": "function", "function": {"name": "listen"}}
FORM: JSON = {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}
HELLO = [user("hello")]
ONLY_LOOK: JSON = {"type": "function", "function": {"name": "look"}}


Staged = Callable[..., Stage]


@pytest.fixture
def staged() -> Staged:
    """The model says whatever comes to mind, and what meets a guide where there is one."""
    model = models.model("qwen2.5")
    return lambda *guides: Stage(model, MemoryStore(), Script(guides=guides))


@pytest.mark.parametrize(("choice", "tool"), [("required", "look"), ({**LISTEN}, "listen")])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_required_call_is_made(staged: Staged, choice: JSON, tool: str, stream: bool) -> None:
    async with staged("tag") as stage:
        answer = await stage.say("s", HELLO, tools=[LOOK, LISTEN], tool_choice=choice, stream=stream, n=2)
        for said in answer.choices:
            assert [call["function"]["name"] for call in said.message["tool_calls"]] == [tool]
            assert (said.finish_reason, said.message["content"]) == ("tool_calls", None)
        await check_session(stage, "s")


async def test_content_of_a_form_is_the_content(staged: Staged) -> None:
    async with staged("json") as stage:
        answer = await stage.say("s", HELLO, **FORM)
        assert msgspec.json.decode(answer.choices[0].message["content"]) == {"a": 0}
        (logged,) = stage.watched.calls
        assert logged.sampling["guide"] == {"kind": "json", "value": SCHEMA}
        await check_session(stage, "s")


async def test_what_was_held_is_marked_and_the_next_turn_extends_it(staged: Staged) -> None:
    async with staged("json") as stage:
        held = await stage.say("s", HELLO, **FORM)
        await stage.say("s", [*HELLO, held.choices[0].message, user("and freely?")])
        (sample,) = (await stage.get("/sessions/s/samples"))["samples"]
        assert [span["constrained"] for span in sample["spans"]] == [True, False]
        await check_session(stage, "s")


REFUSED: list[tuple[tuple[GuideKind, ...], dict[str, JSON], str, str]] = [
    ((), FORM, "response_format", "a form of this kind"),
    (("regex",), {"structured_outputs": {"json": SCHEMA}}, "structured_outputs", "a form of this kind"),
    (("json",), {**FORM, "tools": [LOOK]}, "response_format", "call tools first"),
    (("json",), {"tools": [LOOK], "tool_choice": "required"}, "tool_choice", "tool calls"),
    (("json",), {"tools": [LOOK], "tool_choice": ONLY_LOOK}, "tool_choice", "tool calls"),
    (("json",), {"tools": [LOOK], "parallel_tool_calls": False}, "parallel_tool_calls", "one call"),
]


@pytest.mark.parametrize(("guides", "fields", "param", "words"), REFUSED)
async def test_what_an_engine_cannot_do_is_refused_at_the_door(
    staged: Staged, guides: tuple[GuideKind, ...], fields: dict[str, JSON], param: str, words: str
) -> None:
    async with staged(*guides) as stage:
        answer = await stage.say("s", HELLO, **fields)
        assert answer.error is not None
        assert (answer.status, answer.error["param"]) == (400, param)
        assert answer.error["code"] == "unsupported_parameter"
        assert words in answer.error["message"]
        assert not stage.watched.calls
