"""What a reply is held to, on every real template: all that the family writes meets it, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from stenograph.core import Conversation, Guide, Message, ToolCall
from stenograph.errors import CallerError
from stenograph.render.held import Demand, Holder
from stenograph.render.writing import ReplyWriter
from tests.render.formats import accepts
from tests.render.rollouts import TOOL
from tests.render.test_habits import renderer_at

OTHER = {"type": "function", "function": {"name": "other"}}
TALK = Conversation((Message("user", "Hello"),), tools=(TOOL, OTHER))
BARE = msgspec.structs.replace(TALK, tools=())
SCHEMA = Guide("json", {"type": "object"})
LOOKED = ToolCall("zzzzzzzz0", "look", {"q": "one", "n": 2})
ELSEWHERE = ToolCall("zzzzzzzz0", "other", {})


class Bench:
    """One template: what it is held to, and what its models write."""

    def __init__(self, folder: Path, *, thinking: bool = False) -> None:
        self._renderer = renderer_at(folder)
        self.thinking = thinking
        self.grammar = self._renderer.family(TALK).grammar

    def holds(self, demand: Demand, reply: Message, conversation: Conversation = TALK) -> bool:
        family = self._renderer.family(conversation)
        guide = Holder(family, conversation, thinking=self.thinking).guide(demand)
        assert guide is not None
        written = ReplyWriter(family, self._renderer.eos).write(reply, thinking=self.thinking, close="")
        assert guide.kind == "tag"
        return accepts(guide, family.vocabulary.coding, written)


@pytest.fixture
def bench(tokenizer_folder: Path) -> Bench:
    found = Bench(tokenizer_folder)
    if found.grammar.call is None:
        pytest.skip("this template writes no calls (listed, reviewed)")
    return found


def says(content: str | None, *calls: ToolCall) -> Message:
    return Message("assistant", content, tool_calls=calls)


def test_a_required_call_is_written_as_the_family_writes_calls(bench: Bench) -> None:
    assert bench.holds(Demand(calls=True), says(None, LOOKED))
    assert bench.holds(Demand(calls=True), says(None, ELSEWHERE))
    assert bench.holds(Demand(calls=True, tool="look"), says(None, LOOKED))
    assert not bench.holds(Demand(calls=True), says("No."))
    assert not bench.holds(Demand(calls=True, tool="look"), says(None, ELSEWHERE))


def test_a_template_that_writes_no_calls_holds_nobody_to_one(tokenizer_folder: Path) -> None:
    bench = Bench(tokenizer_folder)
    if bench.grammar.call is None:
        with pytest.raises(CallerError, match="writes no tool calls"):
            bench.holds(Demand(calls=True), says(None, LOOKED))


def test_several_calls_are_several_unless_one_is_wanted(bench: Bench) -> None:
    form = bench.grammar.call
    assert form is not None
    both = says(None, LOOKED, msgspec.structs.replace(LOOKED, id="zzzzzzzz1"))
    several = bool(form.again or form.id_key)
    assert bench.holds(Demand(calls=True), both) == several
    assert not bench.holds(Demand(calls=True, single=True), both)


def test_reasoning_comes_before_what_is_held(bench: Bench) -> None:
    if bench.grammar.think is None or not bench.grammar.think[0]:
        pytest.skip("this template writes no reasoning (listed, reviewed)")
    thought = msgspec.structs.replace(says(None, LOOKED), reasoning="It is { hard }.")
    assert bench.holds(Demand(calls=True), thought)
    bench.thinking = True
    assert bench.holds(Demand(calls=True), thought)
    assert not bench.holds(Demand(calls=True), says(None))
    answered = msgspec.structs.replace(says('{"a": 1}'), reasoning="Well.")
    assert bench.holds(Demand(SCHEMA), answered, BARE)


def test_a_form_is_of_content_and_leaves_calls_alone(bench: Bench) -> None:
    assert bench.holds(Demand(SCHEMA), says('{"a": 1}'))
    assert bench.holds(Demand(SCHEMA), says(None, LOOKED))
    assert not bench.holds(Demand(SCHEMA), says("Well, no."))


def test_where_a_family_adds_nothing_the_form_is_sent_as_it_is(bench: Bench, tokenizer_folder: Path) -> None:
    family = renderer_at(tokenizer_folder).family(BARE)
    guide = Holder(family, BARE, thinking=False).guide(Demand(SCHEMA))
    assert (guide == SCHEMA) == (not family.grammar.content_opening)
    assert Holder(family, TALK, thinking=False).guide(Demand()) is None


def test_one_call_at_most_may_be_none(bench: Bench) -> None:
    form = bench.grammar.call
    assert form is not None
    if form.opening.strip()[:1] in bench.grammar.content_opening:
        with pytest.raises(CallerError, match="begin like any text"):
            bench.holds(Demand(single=True), says("Just so."))
        return
    assert bench.holds(Demand(single=True), says("Just so."))
    assert bench.holds(Demand(single=True), says("Let me see.", LOOKED))
    assert not bench.holds(Demand(single=True), says("Well.", LOOKED, msgspec.structs.replace(LOOKED, id="zzzzzzzz1")))
