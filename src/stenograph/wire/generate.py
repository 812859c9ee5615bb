"""vLLM's `/inference/v1/generate`, tokens in, tokens out: the pair.

`generate_request.py` says what is chosen on the way in, `generate_encode.py` on the way out.
"""

from __future__ import annotations

import hashlib

from stenograph.errors import StenographError
from stenograph.wire import generate_request, stream_options
from stenograph.wire.codec import Decoded, TokenBytes
from stenograph.wire.errors import openai_error
from stenograph.wire.generate_encode import GenerateEncoder, Wishes


def decode(body: bytes, token_bytes: TokenBytes) -> Decoded:
    request, fields = generate_request.request(body)
    wishes = Wishes(
        request_id=request.request_id,
        prompt_ids=bool(request.return_token_ids),
        logprobs=request.sampling_params.logprobs,
        usage=stream_options.wants_usage(request.stream_options),
    )
    return Decoded(
        ask=generate_request.ask(request, fields),
        encoder=GenerateEncoder(wishes),
        stream=bool(request.stream),
        session_id=request.session_id,
        body_hash=hashlib.sha256(body).hexdigest(),
    )


def error_body(error: StenographError) -> bytes:
    return openai_error(error)
