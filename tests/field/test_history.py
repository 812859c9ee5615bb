"""FIELD D, what agents do to a conversation: edit it, shorten it, begin another, go on from two places."""

from __future__ import annotations

import asyncio

import pytest

from stenograph.core import JSON
from tests.field.families import reasons, refuses, rewritten
from tests.field.play import TOOL, Talk, playing, system, user
from tests.field.player import Line
from tests.stage.models import Model

OTHER_TOOL: JSON = {"type": "function", "function": {**TOOL["function"], "name": "listen"}}
SUMMARY = user("So far we counted to three. Go on.")


# ------------------------------------------------------------------------------------------------------------- edits


async def test_edits_an_assistant_message(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk()
        await talk.ask("One", line=Line("First."))
        talk.messages[-1]["content"] = "Something else."
        await talk.ask("Two", line=Line("Second."))
        await play.left("", ("assistant_edited", 1), samples=2)


async def test_edits_an_early_assistant_message(model: Model) -> None:
    async with playing(model) as play:
        talk, fork = play.talk(), rewritten(model, "chat")
        await talk.ask("One", line=Line("First."))
        await talk.ask("Two", line=Line("Second."))
        talk.messages[1]["content"] = "Something else."
        await talk.ask("Three", line=Line("Third."))
        await talk.ask("Four", line=Line("Fourth."))
        await play.left("", fork, ("assistant_edited", 1), fork, samples=4 if fork else 2)


async def test_edits_the_arguments_of_a_call(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", q="cats")
        talk.messages[-1]["tool_calls"][0]["function"]["arguments"] = '{"q": "dogs"}'
        await talk.ask(*talk.results(), line=Line("Found."))
        await play.left("", ("assistant_edited", 1), samples=2)


async def test_edits_the_reasoning(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", line=Line(thinks="I should look", calls=({"q": "cats"},)))
        talk.messages[-1]["reasoning_content"] = "I should not look"
        await talk.ask(*talk.results(), line=Line("Found."))
        await play.left("", ("assistant_edited", 1), samples=2)


async def test_edits_a_user_message(model: Model) -> None:
    async with playing(model) as play:
        talk, fork = play.talk(), rewritten(model, "chat")
        await talk.ask("One", line=Line("First."))
        await talk.ask("Two", line=Line("Second."))
        talk.messages[0]["content"] = "Another one"
        await talk.ask("Three", line=Line("Third."))
        await play.left("", fork, ("history_edited", 0), samples=3 if fork else 2)


async def test_edits_the_result_of_a_tool(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", q="cats")
        await talk.call(*talk.results(), q="dogs")
        talk.messages[2]["content"] = "found nothing"
        await talk.ask(*talk.results(), line=Line("Found."))
        await play.left("", "", ("history_edited", 2), samples=2)


async def test_changes_the_tool_list(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", q="cats")
        talk.tools = [TOOL, OTHER_TOOL]
        await talk.call(*talk.results(), q="dogs")
        await talk.call(*talk.results(), q="mice")
        talk.tools = [TOOL]
        await talk.ask(*talk.results(), line=Line("Found."))
        await play.left("", ("tools_changed", 0), "", ("tools_changed", 0), samples=2)


async def test_changes_the_template_arguments(model: Model) -> None:
    """Those that its template reads; any other makes no difference."""
    switch = {"gpt-oss": "reasoning_effort", "deepseek-v3.1": "thinking"}.get(model.name, "enable_thinking")
    value: JSON = "high" if switch == "reasoning_effort" else model.name == "deepseek-v3.1"
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", q="cats")
        body = {"chat_template_kwargs": {switch: value}}
        await talk.ask(*talk.results(), line=Line("Found."), extra_body=body)
        changed = [("template_arguments_changed", 0)] if reasons(model) else [""]
        await play.left("", *changed, samples=1 + reasons(model))


# ---------------------------------------------------------------------------------------- what the template does itself


async def test_new_user_turn_drops_old_reasoning(model: Model, history: str) -> None:
    async with playing(model, history=history) as play:
        talk, fork = play.talk(), rewritten(model, "reasoned chat", history)
        await talk.ask("One", line=Line("First.", thinks="The first one"))
        await talk.ask("Two", line=Line("Second.", thinks="The second one"))
        notes = {"reasoning_restored": 1} if reasons(model) else {}
        await play.left("", (fork, 1) if fork else "", notes=notes, samples=2 if fork else 1)


# -------------------------------------------------------------------------------------------------------- compaction


async def _three_turns(talk: Talk) -> None:
    for text in ("One", "Two", "Three"):
        await talk.ask(text, line=Line(f"Answer to {text}."))


async def test_compaction(model: Model) -> None:
    """[system, summary], and on from there."""
    async with playing(model) as play:
        talk, fork = play.talk(system("Count.")), rewritten(model, "instructed chat")
        await _three_turns(talk)
        del talk.messages[1:]
        await talk.ask(SUMMARY, line=Line("Four."))
        await talk.ask("And?", line=Line("Five."))
        await play.left("", fork, fork, ("history_shortened", 1), fork, samples=5 if fork else 2)


async def test_compaction_behind_the_first_question(model: Model) -> None:
    """[system, first question, summary]: where two user messages in a row are refused, as the assistant's."""
    async with playing(model) as play:
        talk, fork = play.talk(system("Count.")), rewritten(model, "instructed chat")
        await _three_turns(talk)
        del talk.messages[2:]
        summary: list[JSON] = [SUMMARY]
        if refuses(model, "two user messages in a row"):
            summary = [{"role": "assistant", "content": "We counted to three."}, user("Go on")]
        await talk.ask(*summary, line=Line("Four."))
        await play.left("", fork, fork, ("history_shortened", 2), samples=4 if fork else 2)


async def test_compaction_into_an_assistant_message(model: Model) -> None:
    async with playing(model) as play:
        talk, fork = play.talk(system("Count.")), rewritten(model, "instructed chat")
        await _three_turns(talk)
        del talk.messages[2:]
        await talk.ask({"role": "assistant", "content": "We counted to three."}, "Go on", line=Line("Four."))
        await play.left("", fork, fork, ("history_shortened", 2), samples=4 if fork else 2)


async def test_compaction_that_keeps_the_latest_messages(model: Model) -> None:
    async with playing(model) as play:
        talk, fork = play.talk(system("Count.")), rewritten(model, "instructed chat")
        await _three_turns(talk)
        del talk.messages[1:5]
        talk.messages[1]["content"] = f"{SUMMARY['content']} Three"
        await talk.ask("And?", line=Line("Four."))
        await play.left("", fork, fork, ("history_shortened", 1), samples=4 if fork else 2)


async def test_compaction_by_a_sliding_window(model: Model) -> None:
    async with playing(model) as play:
        talk, fork = play.talk(), rewritten(model, "chat")
        await _three_turns(talk)
        del talk.messages[:2]
        await talk.ask("Four", line=Line("Four."))
        await play.left("", fork, fork, ("history_shortened", 0), samples=4 if fork else 2)


# ---------------------------------------------------------------------------------------------- several conversations


async def test_sub_agents_interleaved(model: Model) -> None:
    async with playing(model) as play:
        fork = rewritten(model, "instructed chat")
        talks = [play.talk(system(f"You are agent {number}."), user(f"Task {number}")) for number in range(3)]
        for number, talk in enumerate(talks):
            await talk.ask(line=Line(f"Begun {number}."))
        for number, talk in enumerate(talks):
            await talk.ask("Go on", line=Line(f"Done {number}."))
        new = ("new_conversation", 0)
        await play.left("", new, new, fork, fork, fork, samples=6 if fork else 3)


async def test_sub_agents_with_tools_interleaved(model: Model) -> None:
    async with playing(model) as play:
        main, helper = play.talk(tools=[TOOL]), play.talk(tools=[OTHER_TOOL, TOOL])
        await main.call("Find", q="cats")
        await helper.call("Help", q="dogs")
        await main.ask(*main.results(), line=Line("Found."))
        await helper.ask(*helper.results(), line=Line("Helped."))
        await play.left("", ("new_conversation", 0), "", "", samples=2)


async def test_a_side_call_leaves_the_conversation_alone(model: Model) -> None:
    async with playing(model) as play:
        main, title = play.talk(tools=[TOOL]), play.talk()
        await title.ask("A title for this, please", line=Line("Cats"))
        await main.call("Find", q="cats")
        await main.ask(*main.results(), line=Line("Found."))
        await play.left("", ("new_conversation", 0), "", samples=2)


@pytest.mark.parametrize("same", [False, True], ids=["different", "equal"])
async def test_two_calls_at_once(model: Model, same: bool) -> None:
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", q="cats")
        other = play.talk(*talk.messages, tools=[TOOL])
        play.player.forget()
        play.player.gate.clear()
        both = [
            asyncio.create_task(talk.ask(*talk.results(), line=Line("Found."))),
            asyncio.create_task(other.ask(*talk.results("found it" if same else "found nothing"), line=Line("Gone."))),
        ]
        for _ in both:
            await play.player.arrived.get()
        play.player.gate.set()
        answers = [await one for one in both]
        assert {answer.turn_id for answer in answers} == set(list(play.record().turns)[1:])
        await play.left("", "", ("resampled" if same else "branched", 2), samples=2)


async def test_n_four_continues_the_third(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        said = [Line("Yes"), Line("Yes sir"), Line("Yes sir, yes"), Line("Yes s")]
        answer = await talk.send("Well?", lines=said, n=4)
        third = talk.keep(answer, 2)
        await talk.ask("Go on", line=Line("Gone."))
        assert play.record().calls[1].after == third.turn_id
        fork = rewritten(model, "chat with tools")
        await play.left("", fork, samples=5 if fork else 4)


async def test_n_four_of_equal_calls_continues_the_third(model: Model) -> None:
    """The call's id, which the agent sends back, tells which one it means. Kimi's ids are no more than numbers."""
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        answer = await talk.send("Find", lines=[Line(calls=({"q": "cats"},))] * 4, n=4)
        talk.keep(answer, 2)
        await talk.ask(*talk.results(), line=Line("Found."))
        numbered = model.name == "kimi-k2"
        continued = play.record().calls[1].after or ""
        assert continued.endswith(".3" if numbered else ".2")
        await play.left("", "", notes={"ambiguous_match": 1} if numbered else {}, samples=4)


async def test_n_four_of_equal_texts_continues_the_latest(model: Model) -> None:
    async with playing(model) as play:
        talk, fork = play.talk(), rewritten(model, "chat")
        answer = await talk.send("Well?", lines=[Line("Yes")] * 4, n=4)
        talk.keep(answer, 2)
        await talk.ask("Go on", line=Line("Gone."))
        assert (play.record().calls[1].after or "").endswith(".3")
        await play.left("", fork, notes={"ambiguous_match": 1}, samples=5 if fork else 4)
