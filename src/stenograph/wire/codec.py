"""What every protocol's pair of functions has in common.

A protocol is a module that meets `Codec`. Its `decode` reads a body once and gives back the `Ask` together with the
one `Encoder` that answers it, because both follow from the same body: whether ids and logprobs were asked for is
nobody else's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from stenograph.core import Ask, Event, Value
from stenograph.errors import StenographError

TokenBytes: TypeAlias = Callable[[int], bytes]
"""The bytes that a token stands for. The text of a token is these bytes decoded, so no second source is needed."""


class Encoder(Protocol):
    """Answers one call. It lives as long as the answer: frames refer to the `Opened` that came before them."""

    def json(self, events: Sequence[Event]) -> bytes:
        """The whole answer: the fold of the very events that a stream would have carried."""

    def sse(self, event: Event) -> bytes:
        """The frames for one event, in order; b"" where the caller asked for nothing that the event holds."""

    def sse_idle(self) -> bytes:
        """A frame that says nothing, for a stream in which nothing is said."""

    def sse_error(self, error: StenographError) -> bytes:
        """The last frames of a stream that has begun and cannot end well."""


class Decoded(Value):
    ask: Ask
    encoder: Encoder
    stream: bool
    session_id: str | None
    """The body's own field. Header and key come before it (CONTRACT 4), so the server decides."""
    body_hash: str
    """SHA-256 of the body: equal bodies are candidates for being repeats."""


class Codec(Protocol):
    def decode(self, body: bytes, token_bytes: TokenBytes) -> Decoded:
        """Raises `CallerError`, and names the field, for a body that cannot be honoured."""

    def error_body(self, error: StenographError) -> bytes: ...
