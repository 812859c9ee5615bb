"""A first prompt as it is put together again from the record: framed by nothing, it is the very prompt."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import msgspec
from hypothesis import given, settings

from stenograph.core import Conversation, Framing
from stenograph.session.canonical import arguments_hash, tools_hash
from stenograph.teacher.framing import framed
from stenograph.teacher.opening import opening
from tests.laws.habits import OTHER_TOOL, Habit, habits, play
from tests.render.rollouts import NOW, TOOL, Rollout
from tests.render.test_habits import renderer_at

SOME = settings(max_examples=max(settings().max_examples // 25, 1))
"""There are many templates; every one is drawn for."""
OFFERS = ((), (TOOL,), (OTHER_TOOL,), (TOOL, OTHER_TOOL))


@SOME
@given(habit=habits, seed=st.integers(0, 1000))
def test_every_first_prompt_is_written_again_as_it_was(tokenizer_folder: Path, habit: Habit, seed: int) -> None:
    rollout = Rollout(renderer_at(tokenizer_folder), seed, verbatim=habit.verbatim, strict=habit.strict)
    play(rollout, habit, tokenizer_folder.name)
    kept = {tools_hash(Conversation((), tools)): msgspec.json.encode(tools) for tools in OFFERS}
    kept[arguments_hash(Conversation(()))] = b"{}"
    decode = rollout.renderer.tokenizer.decode
    for call in {turn.call.id: turn.call for turn in rollout.tree.turns.values() if turn.call.parent is None}.values():
        root = msgspec.structs.replace(call, template_hash="x")
        shown = framed(opening(rollout.tree, root, kept.get), Framing())
        prompt = rollout.renderer.prompt(rollout.renderer.relevant(shown), (), sampled=frozenset(), key="", now=NOW)
        assert decode(prompt.context) == decode(root.context)
