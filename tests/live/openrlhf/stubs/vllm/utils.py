from __future__ import annotations

import secrets


def random_uuid() -> str:
    return secrets.token_hex(16)
