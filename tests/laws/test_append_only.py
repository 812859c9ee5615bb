"""Law 3: what is committed can neither be added again nor changed, and no session reaches into another."""

from __future__ import annotations

import pytest

from stenograph.errors import StoreError
from stenograph.store.store import Store, TurnsCommitted
from tests.laws.record import snapshot, stored_turns
from tests.stage.models import Model
from tests.stage.stage import Stage, user
from tests.stage.stores import Load


async def test_a_turn_is_added_once(model: Model, opened: tuple[Store, Load]) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        await stage.say("s", [user("hello")])
        before = snapshot(stage, ["s"])
        turns = stored_turns(stage, "s")
        with pytest.raises(ValueError, match="cannot be added"):
            stage.tree("s").add(turns)
        with pytest.raises(StoreError, match="never written again"):
            await store.commit([TurnsCommitted(tuple(turns))])
        assert snapshot(stage, ["s"]) == before


async def test_the_same_words_in_two_sessions_are_two_records(model: Model, opened: tuple[Store, Load]) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        first = await stage.say("red", [user("hello")])
        more = [user("hello"), first.choices[0].message, user("go on")]
        await stage.say("blue", more)
        (turn,) = stored_turns(stage, "blue")
        assert turn.call.parent is None
        assert turn.call.after is None
        assert len(stored_turns(stage, "red")) == 1
        assert stage.watched.logged(turn.call.request_id).prompt == turn.call.context.tolist()


async def test_a_trainer_cannot_change_a_sample(model: Model, opened: tuple[Store, Load]) -> None:
    store, load = opened
    async with Stage(model, store, load=load) as stage:
        session = stage.session("s")
        await stage.say("s", [user("hello")])
        (sample,) = session.samples()
        for column in (sample.tokens, sample.sampled, sample.mask, sample.logprobs):
            with pytest.raises(ValueError, match="read-only"):
                column[0] = 1
