"""OpenAI Completions: the pair. A prompt is text that no template writes, or token ids.

`completions_request.py` says what is chosen on the way in, `completions_encode.py` on the way out.
"""

from __future__ import annotations

import hashlib

from stenograph.core import Text, Tokens
from stenograph.errors import StenographError
from stenograph.wire import completions_request, stream_options
from stenograph.wire.codec import Decoded, TokenBytes
from stenograph.wire.completions_encode import CompletionsEncoder, Wishes
from stenograph.wire.errors import openai_error


def decode(body: bytes, token_bytes: TokenBytes) -> Decoded:
    request, fields = completions_request.request(body)
    ask = completions_request.ask(request, fields)
    wishes = Wishes(
        echo=_text(completions_request.prompt(request), token_bytes) if request.echo else "",
        token_ids=bool(request.return_token_ids),
        logprobs=request.logprobs,
        usage=stream_options.wants_usage(request.stream_options),
        tokens_as_ids=bool(request.return_tokens_as_token_ids),
    )
    return Decoded(
        ask=ask,
        encoder=CompletionsEncoder(wishes, token_bytes),
        stream=bool(request.stream),
        session_id=request.session_id,
        body_hash=hashlib.sha256(body).hexdigest(),
    )


def error_body(error: StenographError) -> bytes:
    return openai_error(error)


def _text(prompt: Text | Tokens, token_bytes: TokenBytes) -> str:
    if isinstance(prompt, Text):
        return prompt.text
    return b"".join(token_bytes(id) for id in prompt.ids.tolist()).decode(errors="replace")
