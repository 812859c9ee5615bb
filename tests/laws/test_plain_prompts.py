"""Every law, for prompts without messages; and what a text, or ids, continue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis import given, settings

from stenograph.core import Call, NoteKind, Turn
from stenograph.engine.script import Script
from tests.laws import checks
from tests.laws.plain_agent import Action, Asked, Place, PlainAgent, plain_actions
from tests.laws.record import Record, sampled
from tests.laws.scripts import babble, scripts
from tests.stage.models import Model
from tests.stage.stage import Stage
from tests.stage.stores import STORES, opened

stores = st.sampled_from(STORES)


async def rehearse(model: Model, script: Script, kind: str, actions: Sequence[Action]) -> None:
    with opened(kind) as (store, load):
        async with Stage(model, store, script, load=load) as stage:
            agent = PlainAgent(stage)
            await agent.begin()
            await agent.perform(actions)
            await checks.check_laws(agent)
            for record in (Record(stage, session) for session in agent.sessions):
                for call in record.calls:
                    check_prompt(record, call, agent.asked[call.id].prompt, model)
                    check_continuation(record, call, agent.asked[call.id])


@settings(max_examples=25)
@given(st.data(), stores, plain_actions)
def test_every_law_holds(model: Model, data: st.DataObject, kind: str, actions: list[Action]) -> None:
    script = data.draw(scripts(model))
    asyncio.run(rehearse(model, script, kind, actions))


@settings(max_examples=25)
@given(st.data(), stores, plain_actions)
def test_ids_need_not_mean_anything(model: Model, data: st.DataObject, kind: str, actions: list[Action]) -> None:
    script = data.draw(babble(model))
    asyncio.run(rehearse(model, script, kind, actions))


def check_prompt(record: Record, call: Call, prompt: str | tuple[int, ...], model: Model) -> None:
    """It holds what was asked; and of a text's path what ended its replies, which is noted."""
    told = {note.kind for note in call.notes}
    if isinstance(prompt, str):
        assert check_text(record, call, prompt, model) == (NoteKind.STOP_KEPT in told)
    else:
        assert record.prompt(call) == list(prompt)
        assert NoteKind.STOP_KEPT not in told


def check_continuation(record: Record, call: Call, asked: Asked) -> None:
    """One sample: what goes on from a turn is understood as that, or as a turn that says as much."""
    assert call.parent == call.after
    if asked.meant is not None and (asked.way != "text" or _can_be_put_back(record.turns[asked.meant.turn_id])):
        assert reaches(record, call, asked.prompt, asked.meant)
        assert call.fork is None or call.fork.reason in checks.HONEST or is_like_another(record, call), call.fork


def _can_be_put_back(turn: Turn) -> bool:
    """A stop string may end within a token: its caller cannot know what else was sampled."""
    return not isinstance(turn.stop_reason, str) or turn.stop_reason == turn.ending.rest


def reaches(record: Record, call: Call, prompt: str | tuple[int, ...], meant: Place) -> bool:
    """As far as the turn that was meant, or further: others may say the same."""
    if isinstance(prompt, str):
        return len(prompt) - len(call.messages[0].content or "") >= len(meant.text + meant.cut)
    return len(record.path(call.parent)) >= len(meant.ids)


def is_like_another(record: Record, call: Call) -> bool:
    """What is new in it begins what is new in another, or the other way round: then nobody can say whether its caller
    went another way, or changed what it had."""
    mine = call.messages[0].content or ""
    others = [
        other.messages[0].content or "" for other in record.calls if other.parent == call.parent and other != call
    ]
    return any(other and (mine.startswith(other) or other.startswith(mine)) for other in others)


def check_text(record: Record, call: Call, text: str, model: Model) -> bool:
    """Walks the text along the path. What the path holds beside it are control tokens alone; True: some there are."""
    decode, bos = model.tokenizer.decode, model.tokenizer.decode(model.tokenizer.encode("", special=True))
    path, silent = list(reversed(list(record.conversation(call)))), False
    begun = bool(path) and not text.startswith(path[0].call.messages[0].content or "")
    place = len(bos) if begun else 0  # the text spells the BOS that was put before another
    for turn in path:
        place += len(turn.call.messages[0].content or "")
        spelled, shown = decode(sampled(turn)), turn.reply.content or ""
        if not spelled.startswith(shown) and text.startswith(spelled, place):
            place += len(spelled)
            continue
        assert text.startswith(shown, place)
        place += len(shown)
        if text.startswith(turn.ending.rest, place):
            place += len(turn.ending.rest)
        else:
            assert set(model.tokenizer.encode(turn.ending.rest)) <= model.tokenizer.special
            silent = True
        silent = silent or not spelled.startswith(shown)
    assert call.messages[0].content == text[place:]
    assert decode(call.context.tolist()) in (text[place:], (bos if call.parent is None else "") + text[place:])
    return silent
