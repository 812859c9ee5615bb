"""Law 4 for prompts without messages: each way to leave the path has its reason, and each tolerance its note."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
import pytest

from stenograph.core import JSON
from stenograph.engine.script import Script
from stenograph.store.memory import MemoryStore
from tests.stage.models import Model
from tests.stage.plain_talk import heard_plain
from tests.stage.stage import Stage, user
from tests.stage.talk import Answer

REPLIES = ("the first reply", "the second reply", "the third reply")
Prompt: TypeAlias = list[int]
WAYS: dict[str, tuple[Callable[[Prompt, Prompt, Prompt], Prompt], str | None]] = {
    "goes on": (lambda begun, first, second: [*second, 5], None),
    "asks again": (lambda begun, first, second: begun, "resampled"),
    "goes on from the first turn": (lambda begun, first, second: [*first, 7, 8], "branched"),
    "edits a reply": (lambda begun, first, second: [*second[:-1], 5, 6], "assistant_edited"),
    "stops within a reply": (lambda begun, first, second: second[:-2], "history_shortened"),
    "stops within a prompt": (lambda begun, first, second: begun[:1], "history_shortened"),
    "begins otherwise": (lambda begun, first, second: [9, *second], "new_conversation"),
}
"""Given the first prompt, and everything up to and with the first reply, and the second."""


class Talk:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    async def complete(self, prompt: str | Prompt, **fields: JSON) -> Answer:
        body = {"model": "any", "prompt": prompt, "return_token_ids": True, **fields}
        response = await self.stage.http.post("/s/s/v1/completions", content=msgspec.json.encode(body))
        return heard_plain(response.status_code, response.headers, response.content)

    async def turn(self, answer: Answer) -> JSON:
        turns = (await self.stage.get("/sessions/s/tree"))["turns"]
        return next(turn for turn in turns if turn["id"] == answer.turn_id)


def whole(answer: Answer) -> Prompt:
    return [*answer.prompt_ids, *answer.choices[0].token_ids]


@pytest.mark.parametrize("way", WAYS)
async def test_a_fork_says_why(model: Model, way: str) -> None:
    changed, reason = WAYS[way]
    async with Stage(model, MemoryStore(), Script(replies=REPLIES)) as stage:
        talk = Talk(stage)
        first = await talk.complete("Once upon a time")
        second = await talk.complete([*whole(first), *range(100, 120)])
        prompt = changed(list(first.prompt_ids), whole(first), whole(second))
        third = await talk.complete(prompt)
        turn = await talk.turn(third)
        assert list(third.prompt_ids) == prompt
        assert (turn["fork"] and turn["fork"]["reason"]) == reason
        assert (turn["parent"] == second.turn_id) == (reason is None)


async def test_a_text_that_passes_over_the_end_of_a_reply_is_noted(model: Model) -> None:
    async with Stage(model, MemoryStore(), Script(replies=REPLIES, cut=1.0)) as stage:
        talk = Talk(stage)
        first = await talk.complete("Once")
        second = await talk.complete("Once" + first.choices[0].message["content"] + " and then")
        turn = await talk.turn(second)
        assert list(second.prompt_ids[: len(whole(first))]) == whole(first)
        assert (turn["parent"], turn["fork"]) == (first.turn_id, None)
        assert [note["kind"] for note in turn["notes"]] == ["stop_kept"]
        assert (await stage.get("/sessions/s"))["branches"] == 1


async def test_a_text_goes_on_from_a_reply_of_white_space(model: Model) -> None:
    async with Stage(model, MemoryStore(), Script(replies=("\n",))) as stage:
        talk = Talk(stage)
        first = await talk.complete("Once")
        second = await talk.complete("Once\n upon a time")
        assert (await talk.turn(second))["parent"] == first.turn_id


async def test_a_text_that_is_read_back_from_ids_spells_their_beginning(model: Model) -> None:
    """The BOS that was put before the first prompt is part of what its caller decodes."""
    async with Stage(model, MemoryStore(), Script(replies=REPLIES)) as stage:
        talk = Talk(stage)
        first = await talk.complete("Once upon a time")
        read = model.tokenizer.decode(whole(first))
        second = await talk.complete(f"{read} and then")
        assert list(second.prompt_ids)[: len(whole(first))] == whole(first)
        assert (await talk.turn(second))["fork"] is None


async def test_a_text_that_spells_the_end_out_has_it_once(model: Model) -> None:
    async with Stage(model, MemoryStore(), Script(replies=REPLIES, cut=1.0)) as stage:
        talk = Talk(stage)
        first = await talk.complete("Once")
        close = model.tokenizer.text_of(first.choices[0].token_ids[-1])
        second = await talk.complete("Once" + first.choices[0].message["content"] + close + "\nand then")
        turn = await talk.turn(second)
        assert list(second.prompt_ids) == [*whole(first), *second.prompt_ids[len(whole(first)) :]]
        assert close not in model.tokenizer.decode(second.prompt_ids[len(whole(first)) :])
        assert (turn["parent"], turn["fork"], turn["notes"]) == (first.turn_id, None, [])


@pytest.mark.parametrize(("back", "reason"), [(" reply", None), ("", "bridge_refused")], ids=["put back", "left out"])
async def test_a_stop_string_was_sampled(model: Model, back: str, reason: str | None) -> None:
    spoken = model.tokenizer.encode("the first reply")
    async with Stage(model, MemoryStore(), Script(replies=(tuple(spoken),))) as stage:
        talk = Talk(stage)
        first = await talk.complete("Once", stop=" reply")
        assert first.choices[0].message["content"] == "the first"
        turn = await talk.turn(await talk.complete("Oncethe first" + back + "\n- and then"))
        assert (turn["fork"] and turn["fork"]["reason"]) == reason


async def test_a_text_goes_on_from_a_conversation(model: Model) -> None:
    """As the template writes it; so an agent may begin with one protocol and go on with another."""
    async with Stage(model, MemoryStore(), Script(replies=REPLIES, cut=1.0)) as stage:
        talk = Talk(stage)
        said = await stage.say("s", [user("Tell me.")])
        rendered = model.tokenizer.decode([*said.prompt_ids, *said.choices[0].token_ids])
        answer = await talk.complete(rendered + "\nand then")
        turn = await talk.turn(answer)
        assert (turn["parent"], turn["fork"]) == (said.choices[0].turn_id, None)
        assert list(answer.prompt_ids[: len(said.prompt_ids)]) == list(said.prompt_ids)
