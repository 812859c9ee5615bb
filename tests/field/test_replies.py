"""FIELD D, what becomes of a reply: how it was sampled, how it ended, and what the agent makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from openai.types.chat import ChatCompletionMessage

from stenograph.core import JSON
from tests.field.families import opens_reasoning, reasons, rewritten
from tests.field.play import TOOL, Play, plain, playing, whole
from tests.field.player import Line
from tests.laws.record import sampled
from tests.stage.models import Model

ANSWER = "Answer: naïve 日本 😀, looking at tokenization."
SPLIT = "\U00012000"
"""A cuneiform sign: no vocabulary has it whole."""
REPLACEMENT = "\ufffd"


# ------------------------------------------------------------------------------------------------ how it was sampled


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
        await talk.call(*talk.results(), q="naïve 日本 😀, looking at tokenization")
        await talk.ask(*talk.results(), line=Line("Found."))
        await talk.ask("And?", line=Line("No."))
        assert all(_is_not_canonical(play, turn_id) for turn_id in list(play.record().turns)[:2])
        fork = rewritten(model, "chat with tools", history)
        await play.left("", "", "", fork, samples=2 if fork else 1)


def _is_not_canonical(play: Play, turn_id: str) -> bool:
    tokenizer, ids = play.stage.renderer.tokenizer, sampled(play.record().turns[turn_id])
    return tokenizer.encode(tokenizer.decode(ids)) != ids


# ------------------------------------------------------------------------------------------------------ how it ended


async def test_ends_with_the_stop_token(model: Model, history: str) -> None:
    async with playing(model, history=history) as play:
        talk = play.talk()
        first = await talk.ask("One", line=Line("First."))
        await talk.ask("Two", line=Line("Second."))
        record, stops = play.record(), play.stage.renderer.stop_ids
        assert sampled(record.turns[first.turn_id])[-1] in stops
        spelled = play.stage.renderer.tokenizer.text_of
        prompt = [id for id in record.prompt(record.calls[1]) if spelled(id).strip(" \nĊĠ▁")]
        assert not any({one, other} <= stops for one, other in pairwise(prompt)), "closed twice"
        fork = rewritten(model, "chat", history)
        await play.left("", fork, samples=2 if fork else 1)


@pytest.mark.parametrize("place", ["in a word", "in a character"])
async def test_is_cut_by_length(model: Model, history: str, place: str) -> None:
    async with playing(model, history=history) as play:
        talk, ids = play.talk(), _cut(play, model, in_character=place == "in a character")
        first = await talk.ask("One", line=Line(ids=ids + ids), max_tokens=len(ids))
        assert first.finish_reason == "length"
        await talk.ask("Go on", line=Line("Done."))
        fork = rewritten(model, "cut", history)
        await play.left("", fork, samples=2 if fork else 1)
        context = play.record().calls[1].context.tolist()
        assert fork or context[0] in play.stage.renderer.tokenizer.control, "the close is context"


def _cut(play: Play, model: Model, *, in_character: bool) -> tuple[int, ...]:
    """The beginning of a reply, ending in half of something."""
    ids = play.player.ids_of(Line(f"Yes {SPLIT}, tokenization", close=""), thinking=opens_reasoning(model))
    spell = play.stage.renderer.tokenizer.decode
    texts = [spell(ids[:count]) for count in range(len(ids))]
    halves = [count for count, text in enumerate(texts) if text.endswith(REPLACEMENT if in_character else "token")]
    return ids[: halves[0]]


# ------------------------------------------------------------------------------------------- what the agent sends back


def _stripped(message: ChatCompletionMessage) -> JSON:
    return {**plain(message), "content": (message.content or "").strip()}


async def test_strips_outer_whitespace(model: Model, history: str) -> None:
    async with playing(model, history=history) as play:
        talk = play.talk(echo=_stripped)
        for number in range(3):
            await talk.ask(f"Question {number}", line=Line("Yes. \n"))
        fork = rewritten(model, "chat", history)
        await play.left("", fork, fork, notes={"whitespace_ignored": 2}, samples=3 if fork else 1)


async def test_does_not_echo_reasoning(model: Model, history: str) -> None:
    async with playing(model, history=history) as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", line=Line(thinks="I should look", calls=({"q": "cats"},)))
        await talk.call(*talk.results(), line=Line(thinks="And again", calls=({"q": "dogs"},)))
        await talk.ask(*talk.results(), line=Line("Found.", thinks="That is it"))
        assert not any("reasoning_content" in message for message in talk.messages)
        fork = rewritten(model, "reasoned tool loop", history)
        notes = {"reasoning_restored": 2} if reasons(model) else {}
        await play.left("", fork, fork, notes=notes, samples=3 if fork else 1)


async def test_echoes_reasoning(model: Model, history: str) -> None:
    async with playing(model, history=history) as play:
        talk = play.talk(tools=[TOOL], echo=whole)
        await talk.call("Find", line=Line(thinks="I should look", calls=({"q": "cats"},)))
        await talk.ask(*talk.results(), line=Line("Found.", thinks="That is it"))
        assert reasons(model) == any("reasoning_content" in message for message in talk.messages)
        fork = rewritten(model, "reasoned tool loop", history)
        await play.left("", fork, samples=2 if fork else 1)


async def test_reasoning_that_is_not_echoed_is_not_restored_under_strict(model: Model) -> None:
    async with playing(model, reasoning="strict") as play:
        talk = play.talk(tools=[TOOL])
        await talk.call("Find", line=Line(thinks="I should look", calls=({"q": "cats"},)))
        await talk.ask(*talk.results(), line=Line("Found."))
        fork = "template_rewrote_history" if reasons(model) else ""
        await play.left("", fork, samples=2 if fork else 1)


PRINTED: dict[str, Callable[[JSON], str]] = {
    "with other spaces": lambda arguments: json.dumps(arguments, indent=2),
    "in another order": lambda arguments: json.dumps(dict(reversed(arguments.items())), ensure_ascii=True),
    "as javascript does": lambda arguments: json.dumps(arguments, separators=(",", ":")),
    "as python does": repr,
}


@pytest.mark.parametrize("printer", PRINTED)
async def test_reserialises_arguments(model: Model, printer: str) -> None:
    def reprinted(message: ChatCompletionMessage) -> JSON:
        kept = plain(message)
        for call in kept.get("tool_calls", ()):
            function = call["function"]
            function["arguments"] = PRINTED[printer](json.loads(function["arguments"]))
        return kept

    async with playing(model) as play:
        talk = play.talk(tools=[TOOL], echo=reprinted)
        await talk.call("Find", q="cats ü", n=2, deep=False)
        await talk.call(*talk.results(), q="dogs", n=3, deep=True)
        await talk.ask(*talk.results(), line=Line("Found."))
        await play.left("", "", "", notes={"arguments_reformatted": 2}, samples=1)


async def test_content_null_with_tool_calls(model: Model) -> None:
    async with playing(model) as play:
        talk = play.talk(tools=[TOOL])
        called = await talk.call("Find", q="cats")
        assert called.message["content"] is None
        await talk.ask(*talk.results(), line=Line("Found."))
        record = play.record()
        prompt = play.stage.renderer.tokenizer.decode(record.prompt(record.calls[1]))
        assert "None" not in prompt
        assert "found it" in prompt
        await play.left("", "", samples=1)
