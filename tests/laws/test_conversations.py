"""Random conversations, whatever an agent does to them and whatever goes wrong: every law holds on what they leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import given, settings

from stenograph.engine.script import Script
from tests.laws import checks
from tests.laws.actions import Action, anything, conversations, friendly
from tests.laws.agent import Agent
from tests.laws.scripts import babble, scripts
from tests.stage import models
from tests.stage.models import Model
from tests.stage.stage import Stage
from tests.stage.stores import STORES, opened

stores = st.sampled_from(STORES)


async def rehearse(
    model: Model, script: Script, kind: str, actions: Sequence[Action], *more: Callable[[Agent], None]
) -> None:
    with opened(kind) as (store, load):
        async with Stage(model, store, script, load=load) as stage:
            agent = Agent(stage)
            await agent.begin()
            await agent.perform(actions)
            await checks.check_laws(agent)
            for check in more:
                check(agent)


@given(st.data(), stores, conversations(anything))
def test_every_law_holds_whatever_is_done(model: Model, data: st.DataObject, kind: str, actions: list[Action]) -> None:
    script = data.draw(scripts(model))
    asyncio.run(rehearse(model, script, kind, actions, checks.check_extensions))


@given(st.data(), stores, conversations(friendly))
def test_who_changes_nothing_is_continued(model: Model, data: st.DataObject, kind: str, actions: list[Action]) -> None:
    script = data.draw(scripts(model))
    asyncio.run(rehearse(model, script, kind, actions, checks.check_extensions))


@given(st.data(), stores, conversations(anything))
def test_ids_need_not_mean_anything(model: Model, data: st.DataObject, kind: str, actions: list[Action]) -> None:
    """Control tokens in a reply, halves of characters: what a prompt can't continue forks, and says so."""
    script = data.draw(babble(model))
    asyncio.run(rehearse(model, script, kind, actions))


@settings(max_examples=max(settings().max_examples // 25, 1))
@given(st.data(), stores, conversations(anything))
def test_every_law_holds_on_every_tokenizer_at_hand(
    tokenizer_folder: Path, data: st.DataObject, kind: str, actions: list[Action]
) -> None:
    """Few examples of each: here it is the templates that are many."""
    chosen = models.model(tokenizer_folder.name)
    script = data.draw(scripts(chosen))
    asyncio.run(rehearse(chosen, script, kind, actions))
