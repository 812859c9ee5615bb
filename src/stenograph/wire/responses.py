"""OpenAI Responses: the pair.

`responses_request.py` says what is chosen on the way in, `responses_encode.py` on the way out.
"""

from __future__ import annotations

import hashlib

from stenograph.errors import StenographError
from stenograph.wire import body as bodies
from stenograph.wire import responses_request, responses_tools
from stenograph.wire.codec import Decoded, TokenBytes
from stenograph.wire.errors import openai_error
from stenograph.wire.responses_answer import UNASKED
from stenograph.wire.responses_encode import ResponsesEncoder, Wishes
from stenograph.wire.responses_request import LOGPROBS, SEALED, ResponsesRequest


def decode(body: bytes, token_bytes: TokenBytes) -> Decoded:
    request, fields = responses_request.request(body)
    toolbox = responses_tools.toolbox(request.tools or ())
    return Decoded(
        ask=responses_request.ask(request, fields, toolbox),
        encoder=ResponsesEncoder(
            _wishes(request), toolbox, {**UNASKED, **bodies.said(fields, UNASKED.keys())}, token_bytes
        ),
        stream=bool(request.stream),
        session_id=request.session_id,
        body_hash=hashlib.sha256(body).hexdigest(),
    )


def error_body(error: StenographError) -> bytes:
    return openai_error(error)


def _wishes(request: ResponsesRequest) -> Wishes:
    include = request.include or ()
    return Wishes(
        token_ids=bool(request.return_token_ids),
        logprobs=LOGPROBS in include or bool(request.top_logprobs),
        sealed=SEALED in include,
    )
