"""Anthropic Messages: the pair.

`messages_request.py` says what is chosen on the way in, `messages_blocks.py` and `messages_encode.py` on the way out.
"""

from __future__ import annotations

import hashlib

from stenograph.errors import StenographError
from stenograph.wire import messages_request
from stenograph.wire.codec import Decoded, TokenBytes
from stenograph.wire.errors import anthropic_error
from stenograph.wire.messages_blocks import Thinking
from stenograph.wire.messages_encode import MessagesEncoder


def decode(body: bytes, token_bytes: TokenBytes) -> Decoded:
    request, fields = messages_request.request(body)
    return Decoded(
        ask=messages_request.ask(request, fields),
        encoder=MessagesEncoder(_thinking(request.thinking)),
        stream=bool(request.stream),
        session_id=request.session_id,
        body_hash=hashlib.sha256(body).hexdigest(),
    )


def error_body(error: StenographError) -> bytes:
    return anthropic_error(error)


def _thinking(field: messages_request.ThinkingField | None) -> Thinking:
    if field is None:
        return "shown"
    if field.type == "disabled":
        return "hidden"
    return "omitted" if field.display == "omitted" else "shown"
