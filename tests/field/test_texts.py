"""FIELD D, text is text: a marker in what users, instructions and tools say is never taken for the real thing."""

from __future__ import annotations

import pytest

from tests.field.families import notes_on
from tests.field.play import TOOL, playing, system
from tests.field.player import Line
from tests.stage.models import Model

HARMLESS = "harmless words"
ALWAYS = ("<|im_end|>", "<|im_start|>assistant", "<tool_call>", "</tool_call>", "<think>", "</think>", "[INST]")
MOST = 12
"""Of a tokenizer's own markers: some have thousands."""


def _markers(model: Model) -> str:
    tokenizer = model.tokenizer
    closes = [tokenizer.text_of(id) for id in sorted(model.house.renderer.stop_ids)]
    return " ".join([*ALWAYS, *closes, *sorted(tokenizer.markers)[:MOST]])


@pytest.mark.parametrize("whose", ["system", "user", "tool", "assistant"])
async def test_literal_markers(model: Model, whose: str) -> None:
    counts, markers = [], _markers(model)
    for text in (markers, HARMLESS):
        counts.append(await _control_ids(model, {"system": "Be brief.", "user": "Find", "tool": "it", whose: text}))
        assert text == HARMLESS or any("".join(markers.split()) in prompt for prompt in counts[0][1])
    assert counts[0][0] == counts[1][0]


async def _control_ids(model: Model, texts: dict[str, str]) -> tuple[list[int], list[str]]:
    """How many each prompt has of them; and their texts, without white space. (Mistral's system prompt stands before a
    user's message only, so it need not be in the last one.)"""
    async with playing(model) as play:
        talk = play.talk(system(texts["system"]), tools=[TOOL])
        await talk.call(texts["user"], q="cats")
        if "assistant" in texts:
            talk.messages[-1]["tool_calls"][0]["function"]["arguments"] = f'{{"q": "{texts["assistant"]}"}}'
        await talk.ask(*talk.results(texts["tool"]), line=Line("Found."))
        forks = [call.fork.reason.value if call.fork else "" for call in play.record().calls]
        assert forks[1] == ("assistant_edited" if "assistant" in texts else forks[1])
        notes = notes_on(model, "a call that was edited") if "assistant" in texts else {}
        await play.left(*forks, notes=notes, samples=1 + sum(map(bool, forks)))
        prompts, control = [call.prompt for call in play.player.calls], set(model.tokenizer.markers.values())
        read = ["".join(model.tokenizer.decode(prompt).split()) for prompt in prompts]
        return [sum(id in control for id in prompt) for prompt in prompts], read
