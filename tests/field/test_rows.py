"""FIELD D is complete here: every row is a named case, and every case runs on every family of `families.NAMES`.

What each case asserts is at the case: one sample where the template can go on, else the typed reason of the fork.
"""

from __future__ import annotations

import inspect
import re
from types import ModuleType

import pytest

from tests.conftest import ROOT
from tests.field import families, test_calls, test_history, test_replies, test_texts

FIELD = ROOT.parent / "shared" / "FIELD.md"
NO_FIELD = "no ../shared/FIELD.md beside the repository"

ROWS: dict[str, tuple[ModuleType, tuple[str, ...]]] = {
    "samples": (
        test_replies,
        ("test_samples_noncanonical_tokens", "test_samples_noncanonical_tokens_in_calls"),
    ),
    "ends with the stop token": (test_replies, ("test_ends_with_the_stop_token",)),
    "is cut by length": (test_replies, ("test_is_cut_by_length",)),
    "strips the reply's outer whitespace": (test_replies, ("test_strips_outer_whitespace",)),
    "does not echo": (test_replies, ("test_does_not_echo_reasoning", "test_echoes_reasoning")),
    "sends `arguments` re-serialised": (test_replies, ("test_reserialises_arguments",)),
    "edits an assistant message": (
        test_history,
        ("test_edits_an_assistant_message", "test_edits_the_arguments_of_a_call", "test_edits_the_reasoning"),
    ),
    "changes the tool list": (test_history, ("test_changes_the_tool_list",)),
    "gets a new user turn": (test_history, ("test_new_user_turn_drops_old_reasoning",)),
    "summarises its history": (
        test_history,
        ("test_compaction", "test_compaction_into_an_assistant_message", "test_compaction_by_a_sliding_window"),
    ),
    "runs sub-agents": (
        test_history,
        ("test_sub_agents_interleaved", "test_sub_agents_with_tools_interleaved"),
    ),
    "calls twice at once": (test_history, ("test_two_calls_at_once",)),
    "asks n = 4": (test_history, ("test_n_four_continues_the_third",)),
    "repeats a call": (test_calls, ("test_repeats_after_a_client_timeout",)),
    "sends a prompt that is too long": (test_calls, ("test_prompt_too_long_trimmed_retried",)),
    "meets an engine error": (test_calls, ("test_engine_error_then_something_else",)),
    "disconnects mid-answer": (test_calls, ("test_disconnects_mid_answer",)),
    "omits the session": (test_calls, ("test_omits_the_session",)),
    "asks for a stream": (test_calls, ("test_asks_for_a_stream",)),
    "sends `tools`": (
        test_calls,
        ("test_sends_every_parameter", "test_parameters_that_cannot_be_honoured_are_refused"),
    ),
    "sends `content: null`": (test_replies, ("test_content_null_with_tool_calls",)),
    "never asks for logprobs": (test_calls, ("test_never_asks_for_logprobs",)),
    "the engine leaves out a logprob": (test_calls, ("test_engine_leaves_out_a_logprob",)),
    "a literal": (test_texts, ("test_literal_markers",)),
}
"""By how the row begins; in its order."""
LEAST = {"qwen3", "llama3.1", "gpt-oss", "deepseek-v3.1", "kimi-k2", "mistral-nemo", "surrogate-glm-4.6", "qwen3.5"}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_a_case_on_every_family(row: str) -> None:
    module, names = ROWS[row]
    for name in names:
        assert "model" in inspect.signature(getattr(module, name)).parameters


def test_the_families_are_of_every_mechanism() -> None:
    assert {*families.NAMES} >= LEAST


def test_no_row_is_missing() -> None:
    if not FIELD.is_file():
        pytest.skip(NO_FIELD)
    [section] = (part for part in FIELD.read_text().split("\n## ") if part.startswith("D."))
    rows = re.findall(r"^\| (?!---|the agent)(.+?) \|", section, re.MULTILINE)
    assert len(rows) == len(ROWS)
    for row, begins in zip(rows, ROWS, strict=True):
        assert row.startswith(begins)
