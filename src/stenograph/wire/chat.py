"""OpenAI Chat Completions: the pair.

`chat_request.py` says what is chosen on the way in, `chat_encode.py` on the way out.
"""

from __future__ import annotations

import hashlib

from stenograph.errors import StenographError
from stenograph.wire import chat_request, stream_options
from stenograph.wire.chat_encode import ChatEncoder, Wishes
from stenograph.wire.codec import Decoded, TokenBytes
from stenograph.wire.errors import openai_error


def decode(body: bytes, token_bytes: TokenBytes) -> Decoded:
    request, fields = chat_request.request(body)
    return Decoded(
        ask=chat_request.ask(request, fields),
        encoder=ChatEncoder(_wishes(request), token_bytes),
        stream=bool(request.stream),
        session_id=request.session_id,
        body_hash=hashlib.sha256(body).hexdigest(),
    )


def error_body(error: StenographError) -> bytes:
    return openai_error(error)


def _wishes(request: chat_request.ChatRequest) -> Wishes:
    return Wishes(
        token_ids=bool(request.return_token_ids),
        logprobs=bool(request.logprobs),
        usage=stream_options.wants_usage(request.stream_options),
        tokens_as_ids=bool(request.return_tokens_as_token_ids),
    )
