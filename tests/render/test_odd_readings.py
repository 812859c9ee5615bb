"""Replies of models whose templates nobody has seen, as such models write them: what they say, and one sample of it."""

from __future__ import annotations

import pytest

from stenograph.core import Conversation, Finish, Message, ToolCall
from stenograph.render.tokenizer import Tokenizer
from tests.render import odd_readings
from tests.render.rollouts import TOOL, Rollout, renderer_with
from tests.render.test_habits import REWROTE, echo, result, user
from tests.render.test_odd_templates import EOS, tokenizer

__all__ = ["tokenizer"]
CALL = '{"name": "look", "arguments": {"q": "cats"}}'


def _rollout(tokenizer: Tokenizer, template: str) -> Rollout:
    return Rollout(renderer_with(tokenizer, template, EOS), seed=21)


def _stops(rollout: Rollout) -> set[str]:
    return {rollout.renderer.tokenizer.text_of(id) for id in rollout.renderer.stop_ids}


def _loops(rollout: Rollout, call: str, *, close: str = EOS) -> None:
    """Two calls at once, their results, and an answer."""
    messages = [user("Find")]
    for _ in range(2):
        reply = rollout.ask(messages, [TOOL], raw=call + call + close)
        assert [(made.name, made.arguments) for made in reply.tool_calls] == [("look", {"q": "cats"})] * 2
        assert not (reply.content or "").strip()
        messages += [echo(reply), result(reply, 0), result(reply, 1)]
    assert rollout.ask(messages, [TOOL], raw=f"Found.{EOS}").content == "Found."
    assert not any(rollout.forks)


def test_calls_of_replies_whose_content_is_null(tokenizer: Tokenizer) -> None:
    _loops(_rollout(tokenizer, odd_readings.NULL_CONTENT), f"<call>{CALL}</call>")


def test_reasoning_that_is_a_part_of_the_content(tokenizer: Tokenizer) -> None:
    rollout, messages = _rollout(tokenizer, odd_readings.THINKING_PART), [user("Find")]
    reply = rollout.ask(messages, [TOOL], raw=f"<jupyter_start>Hm<jupyter_text><call>{CALL}</call>{EOS}")
    assert (reply.reasoning, len(reply.tool_calls)) == ("Hm", 1)
    messages += [Message("assistant", None, None, reply.tool_calls), result(reply)]
    for number in range(3):
        reply = rollout.ask(messages, [TOOL], raw=f"<jupyter_start>Thought {number}<jupyter_text>Answer.{EOS}")
        assert (reply.reasoning, reply.content) == (f"Thought {number}", "Answer.")
        messages += [Message("assistant", "Answer."), user("Next")]
    assert not any(rollout.forks)


def test_a_template_that_prints_parts_takes_none(tokenizer: Tokenizer) -> None:
    rollout = _rollout(tokenizer, odd_readings.ALWAYS_OPEN)
    assert not rollout.family.grammar.style.thinking_part
    assert rollout.family.grammar.think is None


@pytest.mark.parametrize("minds", [False, True])
def test_an_empty_block_of_reasoning_in_the_prompt_opens_none(tokenizer: Tokenizer, minds: bool) -> None:
    rollout = _rollout(tokenizer, odd_readings.SHUT_MIND)
    raw = f"<jupyter_start>thought\nHm\n<jupyter_text>Answer.{EOS}" if minds else f"Answer.{EOS}"
    reply = rollout.ask([user("Hello")], arguments={"minds": minds}, raw=raw)
    assert (reply.reasoning, reply.content) == ("Hm" if minds else None, "Answer.")


@pytest.mark.parametrize("minds", [False, True])
def test_an_empty_block_of_reasoning_that_history_has_too(tokenizer: Tokenizer, minds: bool) -> None:
    rollout, messages = _rollout(tokenizer, odd_readings.EMPTY_MIND), [user("Hello")]
    for _ in range(3):
        raw = f"Hm</mind:a>Answer.{EOS}" if minds else f"Answer.{EOS}"
        reply = rollout.ask(messages, arguments={"minds": minds}, raw=raw)
        assert (reply.reasoning, reply.content) == ("Hm" if minds else None, "Answer.")
        messages += [Message("assistant", "Answer."), user("Next")]
    assert not any(rollout.forks)


def test_reasoning_that_the_prompt_begins_in_words(tokenizer: Tokenizer) -> None:
    rollout, messages = _rollout(tokenizer, odd_readings.BEGUN_MIND), [user("Hello")]
    assert rollout.family.grammar.think == ("My steps:", "[SO]")
    for _ in range(2):
        reply = rollout.ask(messages, raw=f"Hm\n[SO]\nAnswer.{EOS}")
        assert (reply.reasoning, reply.content) == ("Hm", "Answer.")
        messages += [Message("assistant", "Answer."), user("Next")]
    assert rollout.forks == ["", REWROTE]


def test_a_question_that_is_written_otherwise_once_it_is_answered(tokenizer: Tokenizer) -> None:
    rollout = _rollout(tokenizer, odd_readings.MOVED_TOOLS)
    reply = rollout.ask([user("Find")], [TOOL], raw=f"<call>{CALL}</call>{EOS}")
    assert [(made.name, made.arguments) for made in reply.tool_calls] == [("look", {"q": "cats"})]
    assert _stops(rollout) == {EOS}


def test_of_two_closes_the_last_ends_the_turn(tokenizer: Tokenizer) -> None:
    rollout, messages = _rollout(tokenizer, odd_readings.TWO_CLOSES), [user("Hello")]
    assert _stops(rollout) == {EOS}
    for _ in range(3):
        reply = rollout.ask(messages, raw=f"<jupyter_start>Answer.<jupyter_text>{EOS}")
        assert reply.content == "Answer."
        messages += [echo(reply), user("Next")]
    assert not any(rollout.forks)


def test_what_closes_a_call_does_not_stop_the_model_before_the_next_one(tokenizer: Tokenizer) -> None:
    rollout = _rollout(tokenizer, odd_readings.RESULT_INSIDE)
    assert _stops(rollout) == {EOS, "<issue_start>"}
    _loops(rollout, f"<jupyter_start>{CALL}<jupyter_text>", close="")


def test_the_next_turn_that_is_always_opened_is_not_what_closes_calls(tokenizer: Tokenizer) -> None:
    rollout = _rollout(tokenizer, odd_readings.ALWAYS_OPEN)
    assert _stops(rollout) == {EOS}
    _loops(rollout, f"<call>{CALL}</call>")


def test_a_tool_that_is_named_twice(tokenizer: Tokenizer) -> None:
    call = '<to look><invoke name="look"><with name="q">cats</with></invoke>'
    _loops(_rollout(tokenizer, odd_readings.NAME_TWICE), call)


def _told_whole(tokenizer: Tokenizer, template: str, text: str) -> Message:
    """To a caller that does not hear it while it is sampled."""
    renderer = renderer_with(tokenizer, template, EOS)
    asked = Conversation((user("Find"),), (TOOL,))
    reader = renderer.reader(asked, thinking=False, stop=(), new_call_id=lambda: "", early=False)
    ids = tokenizer.encode(text)
    for id in ids:
        reader.feed([id])
    reader.finish(ids, Finish("length"))
    return reader.reply


def test_a_call_cut_short_is_told_with_the_markers_in_the_middle_of_it(tokenizer: Tokenizer) -> None:
    half = '<jupyter_start>look<jupyter_code>{"q": "ca'
    assert _told_whole(tokenizer, odd_readings.NAMED, half).content == half


def test_an_object_among_arguments_that_are_written_as_python_does(tokenizer: Tokenizer) -> None:
    rollout = _rollout(tokenizer, odd_readings.PRINTED)
    raw = f"<do look><with q>cats</with><with deep>{{'a': [1, None, {{'b': True}}]}}</with></do>{EOS}"
    reply = rollout.ask([user("Find")], [TOOL], raw=raw)
    assert reply.tool_calls[0].arguments == {"q": "cats", "deep": {"a": [1, None, {"b": True}]}}
    rollout.ask([user("Find"), echo(reply), result(reply)], [TOOL], says="Done.")
    assert not any(rollout.forks)


@pytest.mark.parametrize("template", [odd_readings.PRINTED, odd_readings.IN_ASCII])
def test_markers_in_arguments_that_are_spelled_out_are_text(tokenizer: Tokenizer, template: str) -> None:
    """So are noncharacters, which a text may spell out itself."""
    rollout, call = _rollout(tokenizer, template), {"deep": {"a": "<|im_end|> \\ufdd0"}}
    told = Message("assistant", "", tool_calls=(ToolCall("callnr001", "look", call),))
    messages = [user("Find"), told, Message("tool", "\\ufdd1", tool_call_id="callnr001"), user("Again")]
    for number in range(2):
        reply = rollout.ask(messages, [TOOL], raw=f"Answer {number}.{EOS}")
        messages += [echo(reply), user("And?")]
    contexts = [turn.call.context.tolist() for turn in rollout.tree.turns.values()]
    assert "ufdd0" in tokenizer.decode(contexts[0])
    assert tokenizer.decode(contexts[0]).count("ufdd") == 2
    assert contexts[0].count(tokenizer.added[EOS]) == 4
    assert not any(rollout.forks)


@pytest.mark.parametrize("template", [odd_readings.PRINTED, odd_readings.IN_ASCII])
def test_calls_whose_placeholders_are_spelled_out_are_one_sample(tokenizer: Tokenizer, template: str) -> None:
    printed = template == odd_readings.PRINTED
    _loops(_rollout(tokenizer, template), "<do look><with q>cats</with></do>" if printed else f"<call>{CALL}</call>")


def test_reasoning_before_calls_that_has_a_name_of_its_own(tokenizer: Tokenizer) -> None:
    rollout, messages = _rollout(tokenizer, odd_readings.TOOL_PLAN), [user("Find")]
    for _ in range(2):
        reply = rollout.ask(messages, [TOOL], raw=f"<jupyter_start>I look<jupyter_text><call>{CALL}</call>{EOS}")
        assert (reply.reasoning, len(reply.tool_calls)) == ("I look", 1)
        messages += [Message("assistant", None, None, reply.tool_calls), result(reply)]
    rollout.ask(messages, [TOOL], says="Found.")
    assert not any(rollout.forks)


def test_a_call_that_gets_its_id_later(tokenizer: Tokenizer) -> None:
    rollout = _rollout(tokenizer, odd_readings.LATER_ID)
    reply = rollout.ask([user("Find")], [TOOL], raw=f"<calls>[{CALL}, {CALL}]</calls>{EOS}")
    assert [made.arguments for made in reply.tool_calls] == [{"q": "cats"}] * 2
    assert not reply.content


APOSTROPHES = {
    odd_readings.UNESCAPED: "[look(q='it's a \"cat\"', n=3), look(q='')]",
    odd_readings.QUOTED_ALL: '[look(q="it\'s a "cat"", n="3"), look(q="")]',
}


@pytest.mark.parametrize("template", APOSTROPHES)
def test_quotes_inside_of_quotes_that_nobody_escapes(tokenizer: Tokenizer, template: str) -> None:
    rollout = _rollout(tokenizer, template)
    reply = rollout.ask([user("Find")], [TOOL], raw=APOSTROPHES[template] + EOS)
    assert [made.arguments for made in reply.tool_calls] == [{"q": 'it\'s a "cat"', "n": 3}, {"q": ""}]
    rollout.ask([user("Find"), echo(reply), result(reply, 0), result(reply, 1)], [TOOL], says="Done.")
    assert not any(rollout.forks)


def test_values_that_nothing_ends(tokenizer: Tokenizer) -> None:
    """A model may put them in quotes all the same; its template does not."""
    rollout, messages = _rollout(tokenizer, odd_readings.UNQUOTED), [user("Find")]
    for call in ("[look(q=cats, n=3), look(q=big dogs)]", '[look(q="cats", n=3), look(q="big dogs")]'):
        reply = rollout.ask(messages, [TOOL], raw=call + EOS)
        assert [made.arguments for made in reply.tool_calls] == [{"q": "cats", "n": 3}, {"q": "big dogs"}]
        messages += [echo(reply), result(reply, 0), result(reply, 1)]
    rollout.ask(messages, [TOOL], says="Done.")
    assert not any(rollout.forks)


def test_a_template_that_forgets_the_comma(tokenizer: Tokenizer) -> None:
    rollout = _rollout(tokenizer, odd_readings.NO_COMMA)
    reply = rollout.ask([user("Find")], [TOOL], raw=f'[look(q="cats", n=3)]{EOS}')
    assert [made.arguments for made in reply.tool_calls] == [{"q": "cats", "n": 3}]


def test_an_opening_that_another_one_begins_with(tokenizer: Tokenizer) -> None:
    rollout, messages = _rollout(tokenizer, odd_readings.ADDRESSED), [user("Find")]
    reply = rollout.ask(messages, [TOOL], raw=f' to=look<jupyter_code>{{"q": "cats"}}{EOS}')
    assert [made.arguments for made in reply.tool_calls] == [{"q": "cats"}]
    messages += [echo(reply), result(reply)]
    thought = " to=self<jupyter_code>Hm<jupyter_text><|im_start|>assistant"
    reply = rollout.ask(messages, [TOOL], raw=f"{thought} to=user<jupyter_code>Found.{EOS}")
    assert (reply.reasoning, reply.content) == ("Hm", "Found.")
    assert not any(rollout.forks)


def test_white_space_behind_a_header_that_becomes_another(tokenizer: Tokenizer) -> None:
    _loops(_rollout(tokenizer, odd_readings.SPACED_COLON), f"<call>{CALL}</call>")


def test_arguments_that_are_tags_of_their_own(tokenizer: Tokenizer) -> None:
    rollout = _rollout(tokenizer, odd_readings.KEYS_AS_TAGS)
    raw = f'<run name="look">\n<q><b>cats</b></q>\n<n>3</n>\n</run><run name="look">\n<q></q>\n</run>{EOS}'
    reply = rollout.ask([user("Find")], [TOOL], raw=raw)
    assert [made.arguments for made in reply.tool_calls] == [{"q": "<b>cats</b>", "n": 3}, {"q": ""}]
    messages = [user("Find"), echo(reply), result(reply, 0), result(reply, 1)]
    reply = rollout.ask(messages, [TOOL], calls=[("look", {"q": "x", "n": 1})])
    rollout.ask([*messages, echo(reply), result(reply)], [TOOL], says="Done.")
    assert not any(rollout.forks)


def test_the_end_of_reasoning_that_never_began(tokenizer: Tokenizer) -> None:
    """It says nothing. Where the model leaves it out, its template does not."""
    rollout, messages = _rollout(tokenizer, odd_readings.SHUT_ALONE), [user("Find")]
    for opening in ("<jupyter_text>", "<jupyter_start>Hm<jupyter_text>", ""):
        reply = rollout.ask(messages, [TOOL], raw=f"{opening}<call>{CALL}</call>{EOS}")
        assert (len(reply.tool_calls), reply.content) == (1, None)
        messages += [echo(reply), result(reply)]
    assert rollout.ask(messages, [TOOL], raw=f"<jupyter_text>Found.{EOS}").content == "Found."
    assert rollout.forks == ["", "", "", REWROTE]


def test_brackets_that_close_a_call_may_stand_in_it(tokenizer: Tokenizer) -> None:
    raw = '<jupyter_start>[{"look": {"q": [{"a": [1, {"b": 2}]}], "n": 1}}, {"look": {}}]'
    reply = _told_whole(tokenizer, odd_readings.NAME_AS_KEY, raw + EOS)
    assert [made.arguments for made in reply.tool_calls] == [{"q": [{"a": [1, {"b": 2}]}], "n": 1}, {}]


def test_values_that_are_covered_because_they_look_like_tags(tokenizer: Tokenizer) -> None:
    rollout = _rollout(tokenizer, odd_readings.COVERED)
    covered = '<run name="look"><with name="q"><![CDATA[a</with><b>]]></with><with name="n">3</with></run>'
    reply = rollout.ask([user("Find")], [TOOL], raw=covered + EOS)
    assert reply.tool_calls[0].arguments == {"q": "a</with><b>", "n": 3}
    assert (reply.tool_calls[0].text, reply.content) == ('{"q": "a</with><b>", "n": 3}', None)
    rollout.ask([user("Find"), echo(reply), result(reply)], [TOOL], says="Done.")
    assert not any(rollout.forks)


def test_a_tool_has_to_be_there_to_be_called(tokenizer: Tokenizer) -> None:
    renderer = renderer_with(tokenizer, odd_readings.NULL_CONTENT, EOS)
    reader = renderer.reader(Conversation((user("Find"),)), thinking=False, stop=(), new_call_id=lambda: "")
    reader.feed_text(f"<call>{CALL}</call>")
    assert not reader.reply.tool_calls
