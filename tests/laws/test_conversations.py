"""Random conversations, whatever an agent does to them and whatever goes wrong: every law holds on what they leave."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st

from stenograph.engine.script import Script
from stenograph.store.store import Store
from tests.laws import checks
from tests.laws.actions import Action, anything
from tests.laws.agent import Agent
from tests.stage.models import Model
from tests.stage.stage import Stage

conversations = st.lists(anything, min_size=1, max_size=12)


async def rehearse(model: Model, script: Script, store: Store, actions: Sequence[Action]) -> Agent:
    async with Stage(model, store, script) as stage:
        agent = Agent(stage)
        await agent.begin()
        await agent.perform(actions)
        await checks.check_all(agent)
        return agent
