"""Reasoning as `encrypted_content`: for agents that keep no state of ours and send nothing else back.

Nothing is secret here, the reasoning stands beside it in the clear. What it is for is that a reply comes back as it
was, and that somebody else's cipher is not taken for a text.
"""

from __future__ import annotations

import base64
import hashlib

_MARK = "stenograph1."
_DIGEST = 8
"""Bytes."""


def seal(reasoning: str) -> str:
    text = reasoning.encode()
    return _MARK + base64.urlsafe_b64encode(_digest(text) + text).decode()


def unsealed(sealed: str) -> str | None:
    """None: it was not sealed here, or is damaged."""
    if not sealed.startswith(_MARK):
        return None
    try:
        content = base64.b64decode(sealed.removeprefix(_MARK), altchars=b"-_", validate=True)
        digest, text = content[:_DIGEST], content[_DIGEST:]
        return text.decode() if digest == _digest(text) else None
    except ValueError:
        return None


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGEST).digest()
