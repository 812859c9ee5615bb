"""Law 1, where it is easily broken: the ids that were sampled are not those that their text would be encoded to."""

from __future__ import annotations

import numpy as np

from stenograph.core import JSON
from stenograph.engine.script import Script
from stenograph.store.store import Store
from tests.laws.record import Record, as_recorded, logprobs, sampled
from tests.stage.models import Model
from tests.stage.stage import Stage, user
from tests.stage.stores import Load

CUT_UP = Script(replies=("looking at tokenization, because therefore",), cut=1.0)


async def test_sampled_ids_stay_as_they_are(model: Model, opened: tuple[Store, Load]) -> None:
    store, load = opened
    async with Stage(model, store, CUT_UP, load=load) as stage:
        messages: list[JSON] = []
        for turn in range(3):
            messages.append(user(f"go on {turn}"))
            answer = await stage.say("s", messages)
            messages.append(answer.choices[0].message)
        record = Record(stage, "s")
    spoken = [list(call.choices[0].ids) for call in stage.watched.calls]
    assert all(ids[:-1] != model.tokenizer.encode("looking at tokenization, because therefore") for ids in spoken)
    assert [sampled(turn) for turn in record.turns.values()] == spoken
    assert [record.prompt(call) for call in record.calls] == [call.prompt for call in stage.watched.calls]
    assert stage.watched.calls[2].prompt[-500:] != []
    for earlier, later in zip(stage.watched.calls, stage.watched.calls[1:], strict=False):
        whole = [*earlier.prompt, *earlier.choices[0].ids]
        assert later.prompt[: len(whole)] == whole


async def test_each_sibling_has_its_own_ids_and_logprobs(model: Model, opened: tuple[Store, Load]) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        await stage.say("s", [user("hello")], n=4, stream=True)
        record = Record(stage, "s")
        (logged,) = stage.watched.calls
    said = {turn.choice: (sampled(turn), logprobs(turn)) for turn in record.turns.values()}
    assert said == {place: (list(one.ids), as_recorded(one.logprobs)) for place, one in enumerate(logged.choices)}
    assert len({odds for _, odds in said.values()}) == 4


async def test_a_logprob_of_zero_is_a_logprob(model: Model, opened: tuple[Store, Load]) -> None:
    """Where the model was certain. Padding looks like that, so it must not be taken for a missing one."""
    store, load = opened
    async with Stage(model, store, Script(replies=("the answer of and to is because " * 4,)), load=load) as stage:
        await stage.say("s", [user("hello")])
        (sample,) = (await stage.get("/sessions/s/samples"))["samples"]
    (logged,) = stage.watched.calls
    odds = [value for value, mark in zip(sample["logprobs"], sample["sampled"], strict=True) if mark]
    assert odds == list(np.array(logged.choices[0].logprobs, np.float32))
    assert 0.0 in odds
