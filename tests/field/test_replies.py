"""FIELD D, what becomes of a reply: how it was sampled, how it ended, and what the agent makes of it on its way back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage

from stenograph.core import JSON
from tests.field.families import reasons, rewritten
from tests.field.play import TOOL, Play, plain, playing, system, user, whole
from tests.field.player import Line
from tests.laws.record import sampled
from tests.stage.models import Model

ANSWER = "Answer: naïve 日本 😀, looking at tokenization."
SPLIT = "\U00012000"
"""A cuneiform sign: no vocabulary has it whole."""


async def test_samples_noncanonical_tokens(model: Model, history: str) -> None:
    async with playing(model, history=history) as play:
        talk = play.talk()
        for number in range(3):
            await talk.ask(f"Question {number}", line=Line(ANSWER))
        assert all(_is_not_canonical(play, turn_id) for turn_id in play.record().turns)
        fork = rewritten(model, "chat", history)
        await play.left("", fork, fork, samples=3 if fork else 1)


async def test_samples_noncanonical_tokens_in_calls(model: Model, history: str) -> None:
    async with playing(model, history=history) as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", q="tokenization of cats", n=2, deep=False)
        await talk.call(*talk.results(), q="naïve 日本 😀")
        await talk.ask(*talk.results(), line=Line("Found."))
        await talk.ask("And?", line=Line("No."))
        assert all(_is_not_canonical(play, turn_id) for turn_id in list(play.record().turns)[:2])
        fork = rewritten(model, "chat with tools", history)
        await play.left("", "", "", fork, samples=2 if fork else 1)


def _is_not_canonical(play: Play, turn_id: str) -> bool:
    tokenizer, ids = play.stage.renderer.tokenizer, sampled(play.record().turns[turn_id])
    return tokenizer.encode(tokenizer.decode(ids)) != ids


async def test_ends_with_the_stop_token(model: Model, history: str) -> None:
    async with playing(model, history=history) as play:
        talk = play.talk()
        first = await talk.ask("One", line=Line("First."))
        await talk.ask("Two", line=Line("Second."))
        record = play.record()
        last = sampled(record.turns[first.turn_id])[-1]
        second = record.prompt(record.calls[1])
        assert last in play.stage.renderer.stop_ids
        assert second.count(last) == record.prompt(record.calls[0]).count(last) + _closes(model, history)
        fork = rewritten(model, "chat", history)
        await play.left("", fork, samples=2 if fork else 1)


def _closes(model: Model, history: str) -> int:
    """How often what closed the first reply stands in a second prompt, more than in the first: for it, and for what the
    template itself closes with the same token."""
    if model.name == "gpt-oss":
        return 1 if history == "verbatim" else 0
    return 1 + (model.name in ("smollm2", "qwen3", "kimi-k2", "llama3.1", "surrogate-glm-4.6", "qwen3.5"))


@pytest.mark.parametrize("place", ["in a word", "in a character"])
async def test_is_cut_by_length(model: Model, history: str, place: str) -> None:
    line = Line(f"Yes {SPLIT}{SPLIT} tokenization therefore", close="")
    async with playing(model, history=history) as play:
        talk = play.talk()
        count = _cut_in_a_word(play) if place == "in a word" else _cut_in_a_character(play, line)
        first = await talk.ask("One", line=line, max_tokens=count)
        assert first.finish_reason == "length"
        await talk.ask("Go on", line=Line("Done."))
        fork = rewritten(model, "cut", history)
        await play.left("", fork, samples=2 if fork else 1)
