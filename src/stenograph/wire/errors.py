"""Errors in OpenAI's shape, which the session calls and every route without a shape of its own use too."""

from __future__ import annotations

import msgspec

from stenograph.core import Value
from stenograph.errors import StenographError


class ErrorDetail(Value):
    message: str
    type: str
    code: str | None
    param: str | None
    """The field at fault, as the caller wrote it."""


class ErrorAnswer(Value):
    error: ErrorDetail


def openai_error(error: StenographError) -> bytes:
    detail = ErrorDetail(error.message, error.type, error.code, error.param)
    return msgspec.json.encode(ErrorAnswer(detail))
