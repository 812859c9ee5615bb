"""The cells of FIELD D that a template refuses: a reviewed list, which may hold no cell that is not refused."""

from __future__ import annotations

import openai
import pytest

from stenograph.core import JSON
from tests.field.families import REFUSED, notes_on, refuses
from tests.field.play import TOOL, Play, Talk, playing, system, user
from tests.field.player import Line
from tests.stage.models import Model


async def _two_calls(play: Play) -> None:
    """Written by hand: a model of a family that has no form for two would not make them."""
    function = {"name": "look", "arguments": '{"q": "cats"}'}
    calls = [{"id": f"abcdefgh{place}", "type": "function", "function": function} for place in range(2)]
    called: JSON = {"role": "assistant", "content": None, "tool_calls": calls}
    talk = play.talk(user("Find"), called, tools=[TOOL])
    await talk.ask(*talk.results(), line=Line("Found."))


async def _two_users(play: Play) -> None:
    await play.talk(user("One"), user("Two")).ask(line=Line("Yes."))


async def _user_behind_result(play: Play) -> None:
    talk = play.talk(tools=[TOOL])
    await talk.call("Find", q="cats")
    await talk.ask(*talk.results(), "And?", line=Line("Found."))


async def _system_in_the_middle(play: Play) -> None:
    talk: Talk = play.talk()
    await talk.ask("One", line=Line("First."))
    await talk.ask(system("Be brief."), "Two", line=Line("Second."))


async def _calls_with_ids_of_its_own(play: Play) -> None:
    talk = play.talk(tools=[TOOL])
    await talk.call("Find", q="cats")
    talk.messages[-1]["tool_calls"][0]["id"] = "toolu_of_mine"
    await talk.ask(*talk.results(), line=Line("Found."))


CELLS = {
    "two calls in one reply": _two_calls,
    "two user messages in a row": _two_users,
    "a user message right behind a result": _user_behind_result,
    "a system message in the middle": _system_in_the_middle,
    "call ids of the agent's own": _calls_with_ids_of_its_own,
}


@pytest.mark.parametrize("cell", CELLS)
async def test_only_the_listed_cells_are_refused(model: Model, cell: str) -> None:
    async with playing(model) as play:
        if not refuses(model, cell):
            await CELLS[cell](play)
            forks = [call.fork.reason.value if call.fork else "" for call in play.record().calls]
            await play.left(*forks, notes=notes_on(model, cell), samples=1 + sum(map(bool, forks)))
            return
        with pytest.raises(openai.BadRequestError) as refused:
            await CELLS[cell](play)
        assert refused.value.code == "template_refused"
        assert REFUSED[model.name, cell] in refused.value.message
        play.player.lines.clear()
        calls = len(play.record().calls)
        await play.left(*[""] * calls, samples=calls, attempts={"refused": 1})
