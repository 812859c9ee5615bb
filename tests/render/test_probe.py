"""A probe says of each real template what its README row says, and what rollouts on it really do."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from stenograph.core import Message
from stenograph.render.probe import Probe, probe
from stenograph.render.rehearsal import Reply, Setting, Step, rehearse
from stenograph.render.takes import Kind
from stenograph.render.telltales import TOOLS
from stenograph.render.tokenizer import Tokenizer
from stenograph.render.trials import RolloutName, TailName, Thinking
from tests.render import odd_templates
from tests.render.rollouts import TOOL, Rollout, renderer_with
from tests.render.test_habits import echo, renderer_at, result, user
from tests.render.test_odd_templates import EOS, tokenizer

__all__ = ["tokenizer"]


@cache
def probed(folder: Path) -> Probe:
    return probe(renderer_at(folder), folder.name)


def forks(found: Probe, rollout: RolloutName, thinking: Thinking, *, tools: bool, setting: int = 0) -> int | None:
    """`setting`: 0 is the default, 1 strict, 2 verbatim. None: there is no such rollout on this template."""
    for cost in found.costs:
        if (cost.rollout, cost.tools, cost.thinking) == (rollout, tools, thinking):
            return cost.settings[setting].forks
    return None


def verdict(found: Probe, tail: TailName, thinking: Thinking = "none", *, tools: bool = False) -> str:
    cells = (one for one in found.tails if (one.tail, one.tools, one.thinking) == (tail, tools, thinking))
    return next(cells).verdict


def taken(found: Probe, what: Kind) -> str:
    return next(take.verdict for take in found.takes if take.what == what)


# ------------------------------------------------------------------------------------------------------ real templates

ROWS: dict[str, tuple[str, str, tuple[int | None, ...]]] = {
    "qwen2.5": ("", "written", (0, None, 0, None, 0, None)),
    "qwen3": ("last loop", "written", (0, 5, 0, 0, 0, 2)),
    "qwen3.5": ("last loop", "written", (5, 5, 0, 0, 2, 2)),
    "qwen3-coder": ("", "written", (0, None, 0, None, 0, None)),
    "llama3.1": ("", "written", (0, None, 0, None, 0, None)),
    "llama4": ("", "written", (5, None, 0, None, 2, None)),
    "gpt-oss": ("last loop", "written", (5, 5, 0, 0, 2, 2)),
    "deepseek-v3.1": ("", "written", (0, 5, 0, 6, 0, 8)),
    "deepseek-v3.1-vllmtools": ("", "written", (5, 5, 1, 6, 3, 8)),
    "kimi-k2": ("", "written", (0, None, 0, None, 0, None)),
    "kimi-k2-thinking": ("loop", "written", (0, 1, 0, 0, 0, 1)),
    "gemma3": ("", "dropped", (0, None, None, None, None, None)),
    "mistral-nemo": ("", "written", (5, None, 1, None, 5, None)),
    "mistral-small-3.2": ("", "written", (0, None, 0, None, 2, None)),
    "mistral-7b-v0.3": ("", "written", (5, None, 1, None, 5, None)),
    "phi-4-mini": ("", "written", (0, None, 0, None, 0, None)),
    "granite-4": ("", "written", (0, None, 0, None, 0, None)),
    "smollm3": ("", "dropped", (0, 5, None, None, None, None)),
    "hermes-2-pro": ("", "written", (0, None, 5, None, 5, None)),
    "surrogate-glm-4.6": ("last loop", "written", (0, 5, 0, 0, 0, 2)),
    "surrogate-minimax-m2": ("last loop", "written", (5, 5, 6, 0, 8, 2)),
}
"""Where past reasoning is written; tool calls; forks under the defaults: chat of 6 turns, tool loop of 7, three tasks
of 3, each without thinking and with it. Reviewed against ../shared/tokenizers/README.md."""


def test_it_says_what_the_template_does(tokenizer_folder: Path) -> None:
    found = probed(tokenizer_folder)
    kept = {"last": found.reasoning.last, "loop": found.reasoning.in_tool_loop, "user": found.reasoning.behind_user}
    kinds: tuple[Thinking, ...] = ("none", "some")
    chat = [forks(found, "chat", thinking, tools=False) for thinking in kinds]
    loops = [forks(found, name, kind, tools=True) for name in ("tool_loop", "tasks") for kind in kinds]
    row = (" ".join(name for name, is_kept in kept.items() if is_kept), found.call_parser.source, (*chat, *loops))
    assert row == ROWS[tokenizer_folder.name]


def test_verbatim_never_forks(tokenizer_folder: Path) -> None:
    for cost in probed(tokenizer_folder).costs:
        assert [one.forks for one in cost.settings if one.history == "verbatim"] == [0, 0]


def test_a_rollout_in_a_session_forks_as_was_foretold(tokenizer_folder: Path) -> None:
    """The probe leaves matching and the tree out; they must not make a difference."""
    found, rollout = probed(tokenizer_folder), Rollout(renderer_at(tokenizer_folder))
    messages = [Message("system", "Be brief."), user("Hello")]
    for number in range(6):
        reply = rollout.ask(messages, says=f"Answer {number}.")
        messages += [echo(reply), user(f"Next {number}")]
    assert sum(map(bool, rollout.forks)) == forks(found, "chat", "none", tools=False)
    if (foretold := forks(found, "tool_loop", "some", tools=True)) is None:
        return
    loop, messages = Rollout(renderer_at(tokenizer_folder)), [Message("system", "Be brief."), user("Find")]
    for number in range(6):
        reply = loop.ask(messages, [TOOL], calls=[("look", {"q": f"cats {number}"})], thinks="hm")
        messages += [echo(reply), result(reply)]
    loop.ask(messages, [TOOL], says="Done.", thinks="hm")
    assert sum(map(bool, loop.forks)) == foretold


def test_thinking_that_is_switched_off_is_a_way_of_its_own(shared_tokenizers: dict[str, Path]) -> None:
    """Qwen3's prompt then holds an empty block, which its history does not repeat."""
    found = probed(shared_tokenizers["qwen3"])
    assert forks(found, "tool_loop", "off", tools=True) == 6
    assert verdict(found, "result", "off", tools=True) == "forks"
    assert forks(probed(shared_tokenizers["qwen2.5"]), "chat", "off", tools=False) is None


def test_reasoning_that_is_not_put_back_costs_a_fork_a_turn(shared_tokenizers: dict[str, Path]) -> None:
    assert forks(probed(shared_tokenizers["qwen3"]), "tool_loop", "some", tools=True, setting=1) == 6


def test_the_system_message_may_be_what_moves(shared_tokenizers: dict[str, Path]) -> None:
    found = probed(shared_tokenizers["mistral-nemo"])
    assert (verdict(found, "user"), verdict(found, "user_without_system")) == ("forks", "appends")


def test_refusals_are_in_the_templates_own_words(shared_tokenizers: dict[str, Path]) -> None:
    words = {take.what: take.words for take in probed(shared_tokenizers["mistral-nemo"]).takes}
    assert words["other_call_ids"] == "Tool call IDs should be alphanumeric strings with length 9!"
    assert (words["later_system"] or "").startswith("After the optional system message, conversation roles must alt")
    two = probed(shared_tokenizers["llama3.1"])
    assert verdict(two, "two_results", tools=True) == "refuses"


def test_what_is_dropped_without_a_word_is_said(shared_tokenizers: dict[str, Path]) -> None:
    assert taken(probed(shared_tokenizers["smollm3"]), "tool_call") == "dropped"
    assert taken(probed(shared_tokenizers["gpt-oss"]), "two_calls") == "dropped"
    assert verdict(probed(shared_tokenizers["gpt-oss"]), "two_results", tools=True) == "absent"
    assert taken(probed(shared_tokenizers["deepseek-v3.1"]), "tools") == "dropped"


@pytest.mark.parametrize("name", ["gpt-oss", "smollm3", "mistral-small-3.2", "qwen3", "llama3.1"])
def test_a_date_in_the_prompt_is_seen(shared_tokenizers: dict[str, Path], name: str) -> None:
    assert probed(shared_tokenizers[name]).date_in_prompt is (name not in ("qwen3", "llama3.1"))


def test_parsers_and_stops_are_shown_as_they_were_learned(shared_tokenizers: dict[str, Path]) -> None:
    qwen, glm = probed(shared_tokenizers["qwen3"]), probed(shared_tokenizers["surrogate-glm-4.6"])
    assert (qwen.think_parser.opening, qwen.think_parser.closing) == ("<think>", "</think>")
    assert qwen.call_parser.form == '<tool_call>\n{"name": NAME, "arguments": {KEY: VALUE}}\n</tool_call>'
    assert [stop.text for stop in glm.stops] == ["<|endoftext|>", "<|user|>", "<|observation|>"]
    assert (glm.call_parser.form or "").startswith("<tool_call>NAME\n<arg_key>KEY</arg_key>")
    assert probed(shared_tokenizers["gpt-oss"]).think_parser.key == "thinking"
    assert probed(shared_tokenizers["deepseek-v3.1"]).think_parser.source == "named"
    kimi = probed(shared_tokenizers["kimi-k2"]).call_parser.form or ""
    assert kimi.startswith("<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0")
    mistral = probed(shared_tokenizers["mistral-small-3.2"]).call_parser.form
    assert mistral == "[TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{KEY: VALUE}"
    assert probed(shared_tokenizers["phi-4-mini"]).call_parser.arguments_as_text


def test_a_second_template_for_tools_is_named(shared_tokenizers: dict[str, Path]) -> None:
    assert len(probed(shared_tokenizers["hermes-2-pro"]).templates) == 2
    assert len(probed(shared_tokenizers["qwen3"]).templates) == 1


# ------------------------------------------------------------------------------------------------------- odd templates


def probe_of(tokenizer: Tokenizer, template: str) -> Probe:
    return probe(renderer_with(tokenizer, template, EOS), "odd")


def test_a_template_nobody_has_seen(tokenizer: Tokenizer) -> None:
    found = probe_of(tokenizer, odd_templates.ODD_MARKERS)
    assert (found.think_parser.opening, found.think_parser.closing) == ("((mind", "mind))")
    assert (found.call_parser.form or "").startswith("@@call NAME with {KEY: VALUE} @@")
    assert found.stop_strings == ("[[/bot]]",)
    assert found.append_only == "partly"
    assert verdict(found, "user", "some") == "forks"
    assert verdict(found, "result", "some", tools=True) == "appends"


CALLS_AS = (
    "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}CALL{% endfor %}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}"
)


def test_calls_in_a_form_that_is_not_known_are_told_from_none_at_all(tokenizer: Tokenizer) -> None:
    """Nothing says where the name ends, or which argument is which."""
    values = probe_of(tokenizer, CALLS_AS.replace("CALL", "{{ c.function.arguments.values() | join('~') }}"))
    assert values.call_parser.source == "unread"
    assert probe_of(tokenizer, CALLS_AS.replace("CALL", "")).call_parser.source == "dropped"


def test_a_template_that_refuses_everything_is_probed_all_the_same(tokenizer: Tokenizer) -> None:
    found = probe_of(tokenizer, "{{ raise_exception('not today') }}")
    assert {take.verdict for take in found.takes} == {"refused"}
    assert {take.words for take in found.takes} == {"not today"}
    assert found.append_only == "no"
    assert forks(found, "chat", "none", tools=False) is None


def test_a_setting_is_what_it_is_called(tokenizer: Tokenizer) -> None:
    thinks = Reply(thinks=True)
    steps: list[Step] = ["user", thinks, "user", thinks]
    renderer = renderer_with(tokenizer, odd_templates.ODD_MARKERS, EOS)
    settings = (Setting(), Setting("verbatim"), Setting("verbatim", "strict"))
    found = [rehearse(renderer, steps, TOOLS, {}, setting) for setting in settings]
    assert [[fork is not None for fork in one] for one in found] == [[False, True], [False, False], [False, False]]
