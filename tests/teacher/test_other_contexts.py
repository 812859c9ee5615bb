"""A teacher that reads the same tokens behind another first prompt: its rows stay the student's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given

from stenograph.core import JSON, Conversation, Framing, Message, Sample, Turn
from stenograph.errors import CallerError
from stenograph.export.sample import samples
from stenograph.gateway import Gateway, Session
from stenograph.teacher.framing import filled, framed
from stenograph.teacher.wanted import spoken, wanted
from tests.demo.acted import needs_model
from tests.export.trees import FACTS, trees
from tests.stage.models import LOOK
from tests.teacher.served import ToyServer, rollout, serving
from tests.teacher.toy import expected, likeliest, odds, plain, teacher

ASKED = (Message("system", "Be brief."), Message("developer", "x"), Message("user", "2 + 2?"))


def of(framing: Framing, conversation: Conversation | None = None) -> list[tuple[str, str | None]]:
    return [(one.role, one.content) for one in framed(conversation or Conversation(ASKED), framing).messages]


def test_instructions_are_put_in_place_of_those_that_were_there() -> None:
    assert of(Framing(system="It is 4.")) == [("system", "It is 4."), ("user", "2 + 2?")]
    assert of(Framing(system="It is 4."), Conversation(ASKED[2:])) == [("system", "It is 4."), ("user", "2 + 2?")]


def test_a_hint_stands_behind_the_question() -> None:
    assert of(Framing(hint="Think."))[-1] == ("user", "2 + 2?\n\nThink.")
    later = Conversation((*ASKED, Message("assistant", "4"), Message("user", "Sure?"), Message("tool", "5")))
    assert of(Framing(hint="Think."), later)[2:] == [
        ("user", "2 + 2?"), ("assistant", "4"), ("user", "Sure?\n\nThink."), ("tool", "5"),
    ]  # fmt: skip
    with pytest.raises(CallerError, match="there is none"):
        framed(Conversation(ASKED[:1]), Framing(hint="Think."))


def test_other_tools_are_shown() -> None:
    conversation = Conversation(ASKED, ({"a": 1},))
    assert framed(conversation, Framing(system="x")).tools == ({"a": 1},)
    assert framed(conversation, Framing(tools=())).tools == ()


def test_names_are_filled_in_from_metadata_and_none_is_made_up() -> None:
    texts = Framing("It is $answer.", "Costs $$5, $answer.")
    assert filled(texts, {"answer": 4}) == Framing("It is 4.", "Costs $5, 4.")
    with pytest.raises(CallerError, match=r"the teacher's system wants \$answer, which its metadata does not have"):
        filled(texts, {})
    with pytest.raises(CallerError, match="a dollar is written"):
        filled(Framing("5$"), {})


@given(trees())
def test_another_context_is_asked_from_where_the_student_speaks(tree: list[Turn]) -> None:
    asks = teacher(framing=Framing("x"), positions="all")
    for sample in samples(FACTS, tree):
        for run in wanted(asks, sample).runs:
            assert run.start >= max(1, spoken(sample))


async def taught(server: ToyServer, url: str, framing: JSON, **fields: Any) -> tuple[Sample, list[int], Session]:
    """A sample of two turns with its teaching, and what the teacher was sent for it."""
    hinted = {"name": "large", "engine": f"vllm={url}", "top-k": 2, **framing}
    async with Gateway(engine="scripted=", teacher=[hinted]) as gateway:
        session = gateway.session("s", **fields)
        await rollout(session)
        sample, *_ = await session.taught("large")
        return sample, max(server.prompts, key=len, default=[]), session


async def prompt_of(messages: list[JSON], tools: list[JSON] | None = None) -> list[int]:
    """What a student is sent who is asked this."""
    async with Gateway(engine="scripted=") as gateway:
        session = gateway.session()
        extra: Any = {"tools": tools} if tools else {}
        await session.openai().chat.completions.create(model="m", messages=messages, max_tokens=1, **extra)
        (turn,) = session.record().calls[0].turns
        context: list[int] = turn.call.context.tolist()
        return context


QUESTION = "question 0 of s"


@needs_model
@pytest.mark.parametrize(
    ("framing", "messages", "tools"),
    [
        (
            {"system": "The answer is $answer."},
            [{"role": "system", "content": "The answer is 42."}, {"role": "user", "content": QUESTION}],
            None,
        ),
        ({"hint": "Say $answer."}, [{"role": "user", "content": f"{QUESTION}\n\nSay 42."}], None),
        ({"tools": [LOOK]}, [{"role": "user", "content": QUESTION}], [LOOK]),
    ],
    ids=["instructions", "a hint", "tools"],
)
@pytest.mark.parametrize("positions", ["sampled", "all"])
async def test_the_same_tokens_are_scored_behind_it(
    framing: JSON, messages: list[JSON], tools: list[JSON] | None, positions: str
) -> None:
    async with serving() as (server, url):
        metadata = {"answer": 42}
        sample, _, session = await taught(server, url, {**framing, "positions": positions}, metadata=metadata)
    before = await prompt_of(messages, tools)
    start = sample.spans[0].start
    first = session.record().calls[0].turns[0].call.context
    assert len(first) == start
    assert before != first.tolist()
    sent = [*before, *sample.tokens[start:].tolist()]
    shift = len(before) - start
    assert any(prompt == sent[: len(prompt)] and len(prompt) > len(before) for prompt in server.prompts)
    assert sample.teachers
    rows = sample.teachers["large"]
    for place in range(len(sample.tokens)):
        known = place >= start and (positions == "all" or bool(sample.sampled[place]))
        seen = sent[: place + shift]
        assert rows.token_ids[place].tolist() == ([id for id, _ in likeliest(seen, 2)] if known else [-1, -1])
        own = np.float32(odds(seen, int(sample.tokens[place]))) if known else 0.0
        assert rows.token_logprobs[place] == own


@needs_model
async def test_who_knows_another_answer_says_something_else() -> None:
    """The same tokens, in sessions that differ in nothing but what the teacher is told."""
    found = []
    async with serving() as (server, url):
        hinted = {"name": "large", "engine": f"vllm={url}", "system": "The answer is $answer."}
        async with Gateway(engine="scripted=", teacher=[hinted]) as gateway:
            for answer in (1, 2):
                session = gateway.session(metadata={"answer": answer})
                client = session.openai()
                content: JSON = [{"role": "user", "content": "?"}]
                await client.chat.completions.create(model="m", messages=content, max_tokens=1, seed=1)
                found += await session.taught("large")
    assert len(server.prompts) == 2
    assert server.prompts[0] != server.prompts[1]


@needs_model
async def test_what_cannot_be_put_into_it_is_marked() -> None:
    async with serving() as (server, url):
        sample, sent, _ = await taught(server, url, {"system": "The answer is $answer."})
        assert sent == []
        assert sample.teacher_info
        assert "wants $answer" in str(sample.teacher_info["large"].error)
        hinted = {"name": "large", "engine": f"vllm={url}", "system": "x"}
        async with Gateway(engine="scripted=", teacher=[hinted]) as gateway:
            session = gateway.session()
            await session.openai().completions.create(model="m", prompt="Once", max_tokens=4)
            (plain_text,) = await session.taught("large")
            assert plain_text.teacher_info
            assert "no template wrote it" in str(plain_text.teacher_info["large"].error)


@needs_model
async def test_beside_one_that_cannot_be_written_the_others_are_asked_once(tmp_path: Path) -> None:
    """That it cannot is made durable, and meanwhile somebody else asks."""
    async with serving() as (server, url):
        hinted = {"name": "large", "engine": f"vllm={url}", "system": "x"}
        async with Gateway(engine="scripted=", store=str(tmp_path), teacher=[hinted]) as gateway:
            session = gateway.session("s")
            await session.openai().completions.create(model="m", prompt="Once", max_tokens=4)
            await rollout(session)
            told = await asyncio.gather(session.taught("large"), session.taught("large"))
    for found in told:
        assert [sample.teachers == {} for sample in found].count(True) == 1
    assert len(server.prompts) == len({tuple(prompt) for prompt in server.prompts})


@needs_model
async def test_without_another_context_it_reads_what_the_student_read() -> None:
    async with serving() as (server, url):
        sample, _, _ = await taught(server, url, {})
    assert any(prompt == sample.tokens.tolist()[: len(prompt)] for prompt in server.prompts)
    assert sample.teachers
    asked = [bool(sampled) for sampled in sample.sampled]
    assert plain(sample.teachers["large"]) == expected(sample.tokens.tolist(), asked, 2)
    assert msgspec.json.decode(msgspec.json.encode(sample.to_json()))
