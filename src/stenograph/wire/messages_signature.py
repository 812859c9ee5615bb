"""The signature of a thinking block, by which it is known for ours when it comes back.

A caller that asked not to see the thinking (`display: omitted`) sends back a block without text: what was thought rides
in the signature, once and never beside the text. Nothing in it is secret. A block that was shown, and comes back blank,
says no more than that it was left out: the record puts it back, as for any caller that does not echo reasoning.
"""

from __future__ import annotations

import base64
import binascii

from stenograph.core import text_hash

SHOWN, CARRIED = "stenograph/shown/", "stenograph/text/"
"""Letters of base64 only, as Anthropic's own have."""


def shown(thinking: str) -> str:
    return SHOWN + text_hash(thinking)


def carrying(thinking: str) -> str:
    return CARRIED + base64.b64encode(thinking.encode()).decode()


def is_ours(signature: str) -> bool:
    return signature.startswith((SHOWN, CARRIED))


def carried(signature: str) -> str | None:
    """None: it carries nothing, or is broken."""
    if not signature.startswith(CARRIED):
        return None
    try:
        return base64.b64decode(signature.removeprefix(CARRIED), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
