"""The cells that a template refuses: reviewed, each with the template's own words. The run fails where they differ."""

from __future__ import annotations

from bench.drift.cells import NO_CALLS

ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
"""gemma3 knows no tools: neither a list of them, nor calls, nor a message of role `tool`."""

REFUSED: dict[tuple[str, str], str] = {
    ("gemma3", "arguments_reprinted"): ALTERNATE,
    ("gemma3", "null_content"): ALTERNATE,
    ("smollm3", "arguments_reprinted"): NO_CALLS,
    ("smollm3", "null_content"): NO_CALLS,
}
"""By tokenizer and habit."""
