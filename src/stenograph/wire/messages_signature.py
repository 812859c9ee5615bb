"""The signature of a thinking block, by which it is known for ours when it comes back: it names the turn.

So of two turns that said the same the one that is meant goes on. A caller that asked not to see the thinking (`display:
omitted`) sends back a block without text: what was thought rides in the signature, once and never beside the text.
Nothing in it is secret. A block that was shown, and comes back blank, was left out: the record puts it back, as for any
caller that does not echo reasoning.
"""

from __future__ import annotations

import base64
import binascii

SHOWN, CARRIED = "stenograph/shown/", "stenograph/text/"


def shown(turn_id: str) -> str:
    return SHOWN + turn_id


def carrying(turn_id: str, thinking: str) -> str:
    return f"{CARRIED}{turn_id}/{base64.b64encode(thinking.encode()).decode()}"


def turn(signature: str) -> str | None:
    """None: it is not ours."""
    if not signature.startswith((SHOWN, CARRIED)):
        return None
    return signature.split("/")[2]


def carried(signature: str) -> str | None:
    """The thinking. None: it was shown, or what was carried is broken."""
    if not signature.startswith(CARRIED):
        return None
    try:
        return base64.b64decode(signature.removeprefix(CARRIED).partition("/")[2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
