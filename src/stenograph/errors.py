"""The error tree. Who is to blame decides the status.

StenographError                      500
├── ConfigError                      the operator's: one line, exit code 2, never over HTTP
├── CallerError                      400  the caller's: mend the request
│   ├── ContextLengthExceeded        400  code context_length_exceeded
│   ├── TemplateRefused              400  the chat template's own words
│   ├── Unauthorized                 401
│   ├── NotFound                     404
│   ├── MethodNotAllowed             405
│   ├── Conflict                     409  the session is finished, or the id is taken
│   ├── TooLarge                     413
│   └── Overloaded                   429  with Retry-After
├── EngineError                      502
│   ├── EvidenceError                502  ids or logprobs that cannot be trusted: nothing is recorded
│   ├── EngineUnavailable            503  no engine answers
│   └── EngineTimeout                504
├── StoreError                       500  the turn could not be made durable, so it was not answered
└── InternalError                    500  a bug of ours
"""

from __future__ import annotations


class StenographError(Exception):
    status = 500
    type = "server_error"
    code: str | None = None

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.param = param
        """The field of the request that is at fault, as the caller wrote it: `messages[2].content`."""


class ConfigError(StenographError):
    """A flag, a file or a model that cannot be used. The message says what to do, in one line."""


class CallerError(StenographError):
    status = 400
    type = "invalid_request_error"


class ContextLengthExceeded(CallerError):
    code = "context_length_exceeded"

    @classmethod
    def of(cls, prompt: int, context: int, param: str) -> ContextLengthExceeded:
        """It begins in OpenAI's and vLLM's words: clients know this error from others by them (verifiers, LiteLLM)."""
        room = "which leaves no room to answer"
        return cls(
            f"This model's maximum context length is {context} tokens. Your prompt has {prompt} tokens, {room}.",
            param=param,
        )


class TemplateRefused(CallerError):
    code = "template_refused"


class Unauthorized(CallerError):
    status = 401
    type = "authentication_error"
    code = "invalid_api_key"


class NotFound(CallerError):
    status = 404
    type = "not_found_error"


class MethodNotAllowed(CallerError):
    status = 405


class Conflict(CallerError):
    status = 409
    type = "conflict_error"


class TooLarge(CallerError):
    status = 413
    type = "request_too_large"


class Overloaded(CallerError):
    status = 429
    type = "rate_limit_error"

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds, for the Retry-After header."""


class EngineError(StenographError):
    status = 502
    type = "engine_error"


class EvidenceError(EngineError):
    code = "engine_evidence_unusable"


class EngineUnavailable(EngineError):
    status = 503
    code = "engine_unavailable"


class EngineTimeout(EngineError):
    status = 504
    code = "engine_timeout"


class StoreError(StenographError):
    type = "store_error"


class InternalError(StenographError):
    code = "internal_error"

    def __init__(self) -> None:
        super().__init__("internal error; the gateway's log has it")
