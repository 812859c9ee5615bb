"""Reasons and notes in words, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stenograph.core import ForkReason, NoteKind

FORKS: Final[Mapping[ForkReason, str]] = {
    ForkReason.NEW_CONVERSATION: "a new conversation, sharing nothing with the earlier ones",
    ForkReason.ASSISTANT_EDITED: "the agent changed what the model had said",
    ForkReason.HISTORY_EDITED: "the agent changed an earlier message",
    ForkReason.HISTORY_SHORTENED: "the agent shortened the history",
    ForkReason.TOOLS_CHANGED: "the tools changed",
    ForkReason.TEMPLATE_ARGUMENTS_CHANGED: "the chat template's arguments changed",
    ForkReason.TEMPLATE_REWROTE_HISTORY: "the chat template rewrote the history",
    ForkReason.BRIDGE_REFUSED: "the prompt could not be proven to continue the tokens",
    ForkReason.RESAMPLED: "the same conversation was asked again",
    ForkReason.BRANCHED: "a second continuation of a turn",
}

NOTES: Final[Mapping[NoteKind, str]] = {
    NoteKind.REASONING_RESTORED: "reasoning that the agent dropped was put back",
    NoteKind.WHITESPACE_IGNORED: "white space differed and was ignored",
    NoteKind.ARGUMENTS_REFORMATTED: "tool arguments came back formatted otherwise",
    NoteKind.AMBIGUOUS_MATCH: "several earlier turns matched; the latest was taken",
    NoteKind.TOOL_CALL_UNPARSED: "a tool call could not be parsed",
    NoteKind.ENGINE_MOVED: "the session moved to another engine",
    NoteKind.SAMPLING_FORCED: "the session overrode a sampling parameter",
    NoteKind.PREFILL: "the reply was begun by the agent",
    NoteKind.STOP_KEPT: "a token that ended a reply, and that the prompt's text does not show, was kept",
    NoteKind.FIELD_IGNORED: "a field of the request was left out",
    NoteKind.TOOL_IGNORED: "a tool that nobody here can run was left out",
}
