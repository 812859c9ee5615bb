"""Templates that nobody has seen: exact, faithful, and one sample where their text allows one."""

from __future__ import annotations

import json

import pytest

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.core import Conversation, Message, ToolCall
from stenograph.errors import ConfigError, TemplateRefused
from stenograph.render.held import Demand, Holder
from stenograph.render.template import Template
from stenograph.render.tokenizer import Tokenizer
from stenograph.render.writing import ReplyWriter
from tests.render import odd_templates
from tests.render.formats import accepts
from tests.render.rollouts import NOW, TOOL, Rollout, renderer_with
from tests.render.test_habits import HABITS, REWROTE, echo, result, user

EOS = "<|im_end|>"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    try:
        return load_tokenizer(load_model_files("smollm2"))
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("habit", ["plain", "stripped", "truncated", "reasoned", "truncated_in_reasoning"])
@pytest.mark.parametrize("name", odd_templates.ALL)
def test_exact_and_faithful(tokenizer: Tokenizer, name: str, habit: str) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ALL[name], EOS), seed=5)
    HABITS[habit](rollout)
    assert set(rollout.forks) <= {"", REWROTE}


@pytest.mark.parametrize("name", ["system_in_user", "listens", "rounds", "xml_calls"])
def test_one_sample_where_the_text_allows_one(tokenizer: Tokenizer, name: str) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ALL[name], EOS), seed=6)
    messages = [Message("system", "Be brief."), user("Hello")]
    for number in range(8):
        reply = rollout.ask(messages, says=f"Answer {number}.")
        messages += [echo(reply), user(f"Next {number}")]
    assert not any(rollout.forks)


def test_replies_that_end_at_a_stop_string_are_one_sample_without_any_control_token(tokenizer: Tokenizer) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.PLAIN_TEXT, EOS), seed=7)
    messages = [user("Hello")]
    for number in range(4):
        reply = rollout.ask(messages, raw=f"Answer {number}.")
        messages += [echo(reply), user("Next")]
    assert not any(rollout.forks)


@pytest.mark.parametrize("name", ["odd_markers", "xml_calls"])
def test_calls_in_a_form_of_their_own_are_read_and_loop(tokenizer: Tokenizer, name: str) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ALL[name], EOS), seed=8)
    close = "" if name == "odd_markers" else EOS
    messages = [user("Find")]
    for number in range(4):
        reply = rollout.ask(messages, [TOOL], calls=[("look", {"q": f"cats {number}", "n": number})], close=close)
        messages += [echo(reply), result(reply)]
    rollout.ask(messages, [TOOL], says="Done.", close="[[/bot]]" if name == "odd_markers" else EOS)
    assert not any(rollout.forks)


def test_a_close_in_plain_text_is_no_content_and_stops_the_model(tokenizer: Tokenizer) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ODD_MARKERS, EOS), seed=10)
    messages = [user("Hello")]
    for number in range(4):
        reply = rollout.ask(messages, says=f"Answer {number}.", close="[[/bot]]")
        messages += [echo(reply), user("Next")]
    assert not any(rollout.forks)
    assert rollout.family.stop_strings == ("[[/bot]]",)


def test_a_text_that_the_template_listens_to_counts_for_ever(tokenizer: Tokenizer) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.LISTENS, EOS), seed=9)
    messages = [user("Hello")]
    for number in range(9):
        reply = rollout.ask(messages, says=f"Answer {number}.")
        messages += [echo(reply), user("Hush now: /quiet" if number == 4 else "Next")]
    contexts = [rollout.renderer.tokenizer.decode(turn.call.context.tolist()) for turn in rollout.tree.turns.values()]
    assert [context.endswith("(quiet) ") for context in contexts] == [False] * 5 + [True] * 4


@pytest.mark.parametrize("name", odd_templates.CALLING)
def test_calls_are_read_as_they_are_written_and_make_one_sample(tokenizer: Tokenizer, name: str) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ALL[name], EOS), seed=11)
    messages = [user("Find")]
    for arguments in ({"n": -3, "q": "a, b) its}"}, {"n": 7}, {"q": ""}, {"deep": True, "list": [1, 2], "q": "x"}):
        reply = rollout.ask(messages, [TOOL], calls=[("look", arguments), ("look", {"n": 1, "q": "two"})])
        messages += [echo(reply), *_results(reply)]
    rollout.ask(messages, [TOOL], says="Done [1](x): all of it.")
    assert not any(rollout.forks)


@pytest.mark.parametrize("name", odd_templates.CALLING)
def test_calls_can_be_held_to_a_form_of_their_own(tokenizer: Tokenizer, name: str) -> None:
    renderer = renderer_with(tokenizer, odd_templates.ALL[name], EOS)
    conversation = Conversation((user("Find"),), tools=(TOOL,))
    family = renderer.family(conversation)
    guide = Holder(family, conversation, thinking=False).guide(Demand(calls=True))
    assert guide is not None
    calls = [ToolCall("zzzzzzzz0", "look", {"n": 3, "q": "x"}), ToolCall("zzzzzzzz1", "look", {})]
    made = tuple(calls[:1] if name == "side_by_side" else calls)  # of those with nothing between them, one
    written = ReplyWriter(family, EOS).write(Message("assistant", tool_calls=made), thinking=False, close="")
    assert accepts(guide, family.vocabulary.coding, written)
    assert not accepts(guide, family.vocabulary.coding, "Just words.")


@pytest.mark.parametrize("verbatim", [False, True])
@pytest.mark.parametrize("name", ["typed", "side_by_side", "like_python", "xml_calls"])
def test_a_second_call_cut_short_is_text_and_the_prompt_goes_on_behind_it(
    tokenizer: Tokenizer, name: str, verbatim: bool
) -> None:
    """The caller was told of it. The template would write that text in front of the calls. Where the path is kept all
    the same, what closes the first call has been sampled already: it must not be written once more."""
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ALL[name], EOS), seed=12)
    whole = rollout.ask([user("Find")], [TOOL], calls=[("look", {"q": "one"}), ("look", {"q": "two"})])
    sampled = next(iter(rollout.tree.turns.values())).sampled.tolist()
    rollout = Rollout(renderer_with(tokenizer, odd_templates.ALL[name], EOS), seed=12, verbatim=verbatim)
    text = tokenizer.decode(sampled)
    half = text[: text.index("two") + 1]
    reply = rollout.ask([user("Find")], [TOOL], raw=half)
    assert whole.tool_calls[0].arguments in [call.arguments for call in reply.tool_calls]
    turn = next(iter(rollout.tree.turns.values()))
    assert (turn.written or turn.reply).tool_calls == reply.tool_calls[:1]
    rollout.ask([user("Find"), echo(reply), *_results(reply)], [TOOL], says="Done.")
    latest = list(rollout.tree.turns.values())[-1]
    assert rollout.forks == ["", "" if verbatim else REWROTE]
    assert tokenizer.decode(latest.call.context.tolist()).startswith(EOS) == verbatim


def test_reasoning_that_the_prompt_has_opened_may_be_empty(tokenizer: Tokenizer) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.OPENED_THINKING, EOS), seed=13)
    messages = [user("Hello")]
    for thinks in ("", "A thought", ""):
        reply = rollout.ask(messages, raw=f"{thinks}\n</think>\n\nAnswer.{EOS}")
        assert (reply.reasoning, reply.content) == (thinks, "Answer.")
        messages += [echo(reply), user("Next")]
    assert not any(rollout.forks)


def test_channels_between_control_tokens(tokenizer: Tokenizer) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.CHANNELS, EOS), seed=14)
    voice = "<|im_start|>mind<|im_end|><|im_start|>voice<|im_end|>{}<|im_start|>voice<|im_end|><|im_start|>turn"
    messages = [user("Hello")]
    for number in range(3):
        raw = f"Thought {number}" + voice.format(f"Answer {number}") + "<|endoftext|>"
        reply = rollout.ask(messages, raw=raw)
        assert (reply.reasoning, reply.content) == (f"Thought {number}", f"Answer {number}")
        messages += [echo(reply), user("Next")]
    assert not any(rollout.forks)


def test_what_is_rewritten_in_as_many_letters_is_found_out(tokenizer: Tokenizer) -> None:
    """The lengths agree, and so does the reply: only the hash of what precedes it tells."""
    rollout = Rollout(renderer_with(tokenizer, odd_templates.LATEST, EOS), seed=15)
    messages = [user("Hello")]
    for number in range(4):
        reply = rollout.ask(messages, says=f"Answer {number}.")
        messages += [echo(reply), user("Next")]
    assert rollout.forks == ["", "", REWROTE, REWROTE]


def test_a_message_that_the_template_leaves_out_is_told(tokenizer: Tokenizer) -> None:
    """Once, on the turn that brings it, by certificate or not; a text that is written otherwise is written."""
    rollout = Rollout(renderer_with(tokenizer, odd_templates.DEAF, EOS), seed=16)
    messages = [Message("system", "Be brief."), user("Hello")]
    for number in range(8):
        reply = rollout.ask(messages, says=f"Answer {number}.")
        messages += [echo(reply), Message("system", "Be verbose."), user("Next")]
    assert rollout.unwritten == [(), *((f"messages[{at}]",) for at in range(3, 24, 3))]
    assert rollout.renderer.certificates.quick >= 3
    assert not any(rollout.forks)


def test_calls_that_the_template_leaves_out_are_told(tokenizer: Tokenizer) -> None:
    renderer = renderer_with(tokenizer, odd_templates.DEAF, EOS)
    call = ToolCall("callnr001", "look", {"q": "cats"})
    silent, spoken = Message("assistant", tool_calls=(call,)), Message("assistant", "Now:", tool_calls=(call,))
    found = Message("tool", "found it", tool_call_id=call.id)
    told = [user("Find"), silent, found, spoken, found, user("Again")]
    for messages in (told, [*told, Message("assistant", "I begin")]):
        prompt = renderer.prompt(Conversation(tuple(messages), (TOOL,)), [], sampled=frozenset(), key="", now=NOW)
        assert prompt.look.unwritten == ("messages[1]", "messages[3].tool_calls")


@pytest.mark.parametrize("cut", ["<|im_start|>", "<|im_start|>voi", "<|im_start|>voice"])
def test_a_reply_cut_inside_its_header_says_nothing(tokenizer: Tokenizer, cut: str) -> None:
    rollout = Rollout(renderer_with(tokenizer, odd_templates.CHANNELS, EOS), seed=17)
    messages = [user("Hello")]
    for _ in range(2):
        reply = rollout.ask(messages, raw=f"Thought<|im_start|>mind<|im_end|>{cut}")
        assert (reply.reasoning, reply.content) == ("Thought", "")
        messages += [echo(reply), user("Go on")]
    assert not any(rollout.forks)


def test_a_close_that_is_special_by_its_name_alone_is_no_content() -> None:
    """Fine-tunes add `<|im_end|>` as an ordinary token, and call it `eos_token`."""
    rollout = Rollout(renderer_with(_flagged(special=False), odd_templates.TYPED, EOS), seed=18)
    messages = [user("Hello")]
    for number in range(3):
        reply = rollout.ask(messages, says=f"Answer {number}.")
        messages += [echo(reply), user("Next")]
    assert not any(rollout.forks)


def test_a_marker_that_has_to_stand_alone_counts_in_a_template_beside_one_that_is_text() -> None:
    tokenizer = _flagged(single_word=True)
    rollout = Rollout(renderer_with(tokenizer, "{{ messages[0].content }}<|im_end|>x", EOS))
    rollout.ask([user("<|im_start|>")], raw="Yes.")
    [turn] = rollout.tree.turns.values()
    assert tokenizer.decode(turn.call.context.tolist()) == "<|im_start|><|im_end|>x"


def _flagged(**flags: bool) -> Tokenizer:
    try:
        spec = json.loads(load_model_files("smollm2").tokenizer_json)
    except ConfigError as error:
        pytest.skip(str(error))
    for token in spec["added_tokens"]:
        token |= flags
    return Tokenizer(json.dumps(spec), [EOS])


@pytest.mark.parametrize("name", odd_templates.BOMBS)
def test_a_template_that_goes_on_and_on_is_refused(name: str) -> None:
    template = Template(odd_templates.BOMBS[name], {})
    with pytest.raises(TemplateRefused, match="cannot render"):
        template.render([{"role": "user", "content": "Hello"}], [], {}, generate=True, now=NOW)


def _results(reply: Message) -> list[Message]:
    return [result(reply, place) for place in range(len(reply.tool_calls))]
