"""Errors in the protocols' own shapes. OpenAI's is also that of the session calls, and of every route without one."""

from __future__ import annotations

import msgspec

from stenograph.core import Value
from stenograph.errors import ContextLengthExceeded, StenographError, TemplateRefused


class ErrorDetail(Value):
    message: str
    type: str
    code: str | None
    param: str | None
    """The field at fault, as the caller wrote it."""


class ErrorAnswer(Value):
    error: ErrorDetail


class ErrorCode(Value):
    error_code: str


class AnthropicDetail(ErrorDetail):
    """`code` and `param` are ours."""

    details: ErrorCode | None
    """Where Anthropic has the code."""


class AnthropicError(Value, tag="error"):
    error: AnthropicDetail


_AT_ANTHROPIC = {500: "api_error", 502: "api_error", 503: "overloaded_error", 504: "timeout_error"}
"""What Anthropic calls those that are not the caller's fault; the others have the same names as at OpenAI."""
_TOO_LONG = "prompt is too long: "
"""Anthropic's words, by which agents (Claude Code) know that it is time to compact."""
_SYSTEM = " (role system is not supported by every chat template but at the beginning)"
"""And those on which Claude Code, which instructs in mid-conversation, puts its instructions into the user's turn."""


def written(error: StenographError, shape: type) -> bytes:
    """In the shape that a route has promised."""
    return anthropic_error(error) if shape is AnthropicError else openai_error(error)


def openai_error(error: StenographError) -> bytes:
    detail = ErrorDetail(error.message, error.type, error.code, error.param)
    return msgspec.json.encode(ErrorAnswer(detail))


def anthropic_error(error: StenographError) -> bytes:
    details = None if error.code is None else ErrorCode(error.code)
    type = _AT_ANTHROPIC.get(error.status, error.type)
    return msgspec.json.encode(AnthropicError(AnthropicDetail(_words(error), type, error.code, error.param, details)))


def _words(error: StenographError) -> str:
    match error:
        case ContextLengthExceeded():
            return _TOO_LONG + error.message
        case TemplateRefused():
            return error.message + _SYSTEM
        case _:
            return error.message
