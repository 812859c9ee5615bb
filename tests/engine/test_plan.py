"""What the fake says, and how it ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stenograph.core import Delta, Finish, Request
from stenograph.engine.script import Rule, Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.errors import ConfigError, ContextLengthExceeded
from tests.engine.streams import END, finish, ids, logprobs, proven, request, small_tokenizer

SMALL = small_tokenizer()
CLOSE = SMALL.added[END]


async def said(engine: ScriptedEngine, asked: Request) -> list[Delta]:
    return await proven(engine.generate(asked), asked, engine.vocab_size)


async def text(engine: ScriptedEngine, asked: Request, choice: int = 0) -> str:
    return SMALL.decode(ids(await said(engine, asked), choice))


def speaking(**script: Any) -> ScriptedEngine:
    return ScriptedEngine(Script(**script), SMALL)


async def test_the_same_script_says_the_same_again() -> None:
    asked = request(n=2, max_tokens=50)
    first, second = speaking(seed=4), speaking(seed=4)
    calls = [await said(first, asked), await said(first, asked)]
    assert [ids(one) for one in calls] == [ids(await said(second, asked)) for _ in calls]
    assert ids(calls[0], 0) != ids(calls[0], 1)
    assert ids(calls[0]) != ids(calls[1])
    assert ids(calls[0]) != ids(await said(speaking(seed=5), asked))


async def test_a_seed_in_the_request_decides_whatever_the_order() -> None:
    engine = speaking()
    asked, other = request(seed=3, max_tokens=50), request([9, 9], seed=3, max_tokens=50)
    first, between, again = await said(engine, asked), await said(engine, other), await said(engine, asked)
    assert (ids(first), logprobs(first)) == (ids(again), logprobs(again))
    assert ids(first) != ids(between)


async def test_alternatives_change_nothing_of_what_is_sampled() -> None:
    plain, ranked = await said(speaking(), request()), await said(speaking(), request(top=5))
    assert (ids(plain), logprobs(plain)) == (ids(ranked), logprobs(ranked))


async def test_a_turn_ends_with_the_first_stop_id() -> None:
    deltas = await said(speaking(replies=["the answer"]), request(stop_token_ids=(CLOSE, 5), max_tokens=50))
    assert ids(deltas)[-1] == CLOSE
    assert finish(deltas) == Finish("stop", CLOSE)


async def test_the_models_own_end_has_no_stop_reason() -> None:
    deltas = await said(speaking(replies=["the answer"], eos=CLOSE), request(max_tokens=50))
    assert (ids(deltas)[-1], finish(deltas)) == (CLOSE, Finish("stop"))


async def test_a_reply_is_cut_at_max_tokens_and_at_the_context() -> None:
    engine = speaking(replies=[(5,) * 100], max_model_len=10)
    deltas = await said(engine, request(max_tokens=4))
    assert (len(ids(deltas)), finish(deltas)) == (4, Finish("length"))
    assert len(ids(await said(engine, request(max_tokens=50)))) == 7
    with pytest.raises(ContextLengthExceeded):
        await said(engine, request(range(10)))


async def test_the_ids_of_a_stop_string_are_kept() -> None:
    engine = speaking(replies=["she sells sea shells"], cut=1.0)
    deltas = await said(engine, request(stop=("no", "sea"), max_tokens=50))
    assert SMALL.decode(ids(deltas)) == "she sells sea"
    assert finish(deltas) == Finish("stop", "sea")


async def test_min_tokens_holds_the_end_back() -> None:
    engine = speaking(replies=["sea"], eos=CLOSE, cut=0.0)
    deltas = await said(engine, request(stop=("sea",), min_tokens=30, max_tokens=60))
    assert len(ids(deltas)) > 30


async def test_ignore_eos_goes_on_to_the_limit() -> None:
    deltas = await said(speaking(eos=CLOSE), request(ignore_eos=True, max_tokens=300))
    assert (len(ids(deltas)), finish(deltas)) == (300, Finish("length"))


async def test_replies_go_round_by_session_and_by_choice() -> None:
    engine = speaking(replies=["one", "two", "three"])
    wide = request(n=2, max_tokens=50)
    other = msgspec.structs.replace(wide, session_id="other", n=1)
    heard = [await text(engine, wide, 1), await text(engine, wide, 0), await text(engine, other)]
    assert heard == ["two", "three", "one"]


async def test_rules_come_before_replies() -> None:
    call = '<tool_call>\n{"name": "search"}\n</tool_call>'
    engine = speaking(rules=[Rule(r"weather in \w+\W*$", call)], replies=["the answer"])
    asked = request(SMALL.encode("what is the weather in Paris?"), max_tokens=99, stop_token_ids=(CLOSE,))
    spoken = ids(await said(engine, asked))
    assert spoken[0] == SMALL.added["<tool_call>"]
    assert SMALL.decode(spoken) == call + END
    assert await text(engine, request(SMALL.encode("the weather in Paris is fine"), max_tokens=99)) == "the answer"


async def test_without_a_tokenizer_it_speaks_random_ids() -> None:
    engine = ScriptedEngine(Script(vocab_size=50, longest=200))
    spoken = ids(await said(engine, request(max_tokens=500)))
    assert len(set(spoken)) > 10
    assert max(spoken) < 50


@pytest.mark.parametrize("script", [Script(replies=("text",)), Script(rules=(Rule("a", "b"),))])
def test_texts_without_a_tokenizer_are_a_mistake(script: Script) -> None:
    with pytest.raises(ConfigError, match="needs a tokenizer"):
        ScriptedEngine(script)
