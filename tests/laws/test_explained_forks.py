"""Law 4, as far as forks are typed: each way to leave the path has its reason, its place, and is counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import pytest

from stenograph.core import JSON
from stenograph.engine.script import Script
from stenograph.store.memory import MemoryStore
from tests.stage import models
from tests.stage.models import LOOK, Model
from tests.stage.stage import Stage, user

REPLIES = ("the first reply", "the second reply", "the third reply")
SYSTEM: JSON = {"role": "system", "content": "You are brief."}


class Talk:
    """Two exchanges, and what may come behind them."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.messages: list[JSON] = [SYSTEM]

    async def exchange(self, text: str) -> None:
        self.messages.append(user(text))
        answer = await self.stage.say("s", self.messages)
        self.messages.append(answer.choices[0].message)

    async def fork_of(self, messages: list[JSON], **fields: JSON) -> JSON:
        answer = await self.stage.say("s", messages, **fields)
        turns = (await self.stage.get("/sessions/s/tree"))["turns"]
        return next(turn["fork"] for turn in turns if turn["id"] == answer.turn_id)


def edited(messages: list[JSON], place: int, text: str) -> list[JSON]:
    return [*messages[:place], {**messages[place], "content": text}, *messages[place + 1 :]]


Change: TypeAlias = Callable[[list[JSON]], list[JSON]]
WAYS: dict[str, tuple[Change, str | None, int | None]] = {
    "goes on": (lambda said: [*said, user("three")], None, None),
    "strips white space": (lambda said: [*edited(said, 4, "the second reply \n"), user("three")], None, None),
    "asks again": (lambda said: said[:4], "resampled", 3),
    "goes on from an earlier turn": (lambda said: [*said[:3], user("else")], "branched", 3),
    "edits a reply": (lambda said: [*edited(said, 2, "never said"), user("three")], "assistant_edited", 2),
    "edits the latest reply": (lambda said: [*edited(said, 4, "never said"), user("three")], "assistant_edited", 4),
    "edits a question": (lambda said: [*edited(said, 1, "never asked"), user("three")], "history_edited", 1),
    "edits the system prompt": (lambda said: [*edited(said, 0, "Be long."), user("three")], "history_edited", 0),
    "drops an exchange": (lambda said: [SYSTEM, *said[3:], user("three")], "history_shortened", 1),
    "begins another conversation": (lambda said: [user("other")], "new_conversation", 0),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_fork_says_why_and_where(model: Model, way: str) -> None:
    changed, reason, at = WAYS[way]
    async with Stage(model, MemoryStore(), Script(replies=REPLIES)) as stage:
        talk = Talk(stage)
        await talk.exchange("one")
        await talk.exchange("two")
        fork = await talk.fork_of(changed(talk.messages))
        assert (fork and fork["reason"], fork and fork["at"]) == (reason, at)
        assert (await stage.get("/sessions/s"))["forks"] == ({reason: 1} if reason else {})
        await _told_in_metrics(stage, {reason: 1} if reason else {})


async def test_the_tools_changed(model: Model) -> None:
    async with Stage(model, MemoryStore(), Script(replies=REPLIES)) as stage:
        talk = Talk(stage)
        await talk.exchange("one")
        fork = await talk.fork_of([*talk.messages, user("two")], tools=[LOOK])
        assert (fork["reason"], fork["at"]) == ("tools_changed", 0)


async def test_an_argument_of_the_template_changed() -> None:
    """Llama's reads one; the others at hand read none."""
    async with Stage(models.model("llama3.1"), MemoryStore(), Script(replies=REPLIES)) as stage:
        talk = Talk(stage)
        await talk.exchange("one")
        fork = await talk.fork_of([*talk.messages, user("two")], chat_template_kwargs={"date_string": "01 Jan 2001"})
        assert (fork["reason"], fork["at"]) == ("template_arguments_changed", 0)


async def test_an_argument_that_the_template_does_not_read_changes_nothing(model: Model) -> None:
    async with Stage(model, MemoryStore(), Script(replies=REPLIES)) as stage:
        talk = Talk(stage)
        await talk.exchange("one")
        assert await talk.fork_of([*talk.messages, user("two")], chat_template_kwargs={"unread": 1}) is None


async def test_every_tolerance_is_noted(model: Model) -> None:
    async with Stage(model, MemoryStore(), Script(replies=("  padded reply \n", "yes"))) as stage:
        talk = Talk(stage)
        await talk.exchange("one")
        talk.messages[-1] = {"role": "assistant", "content": "padded reply"}
        await talk.exchange("two")
        assert (await stage.get("/sessions/s"))["notes"] == {"whitespace_ignored": 1}
        assert b'stenograph_notes_total{kind="whitespace_ignored"} 1.0' in (await stage.http.get("/metrics")).content


async def test_a_reply_that_the_caller_began_is_noted(model: Model) -> None:
    async with Stage(model, MemoryStore(), Script(replies=REPLIES)) as stage:
        await stage.say("s", [user("one"), {"role": "assistant", "content": "Well"}])
        assert (await stage.get("/sessions/s"))["notes"] == {"prefill": 1}


async def test_of_two_at_once_the_second_is_the_branch(model: Model) -> None:
    async with Stage(model, MemoryStore(), Script(replies=REPLIES)) as stage:
        talk = Talk(stage)
        await talk.exchange("one")
        stage.watched.gate.clear()
        stage.watched.forget()
        texts = ("left", "right")
        calls = [asyncio.create_task(stage.say("s", [*talk.messages, user(text)])) for text in texts]
        for _ in texts:
            await stage.watched.arrived.get()
        stage.watched.gate.set()
        for call in calls:
            assert (await call).complete
        assert (await stage.get("/sessions/s"))["forks"] == {"branched": 1}
        parents = Counter(turn["parent"] for turn in (await stage.get("/sessions/s/tree"))["turns"])
        assert sorted(parents.values()) == [1, 2]


async def _told_in_metrics(stage: Stage, forks: dict[str | None, int]) -> None:
    lines = (await stage.http.get("/metrics")).text.splitlines()
    told = [line for line in lines if line.startswith("stenograph_forks_total")]
    assert told == [f'stenograph_forks_total{{reason="{reason}"}} {float(count)}' for reason, count in forks.items()]


async def test_what_was_asked_behind_a_sibling_that_said_the_same_branches_here(model: Model) -> None:
    """Nothing tells which of the two is meant, so it is the latest; and that one was gone on from before."""
    async with Stage(model, MemoryStore(), Script(replies=("the same reply",))) as stage:
        talk = Talk(stage)
        hello = [user("hello")]
        said = [*hello, {"role": "assistant", "content": "the same reply"}]
        forks = [
            await talk.fork_of(messages)
            for messages in (hello, [*said, user("one")], hello, [*said, user("two")], [*said, user("one")])
        ]
    assert [fork and (fork["reason"], fork["at"]) for fork in forks] == [
        None, None, ("resampled", 0), None, ("branched", 2),
    ]  # fmt: skip
