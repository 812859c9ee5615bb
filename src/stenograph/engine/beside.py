"""What engines tell beside their tokens, out of raw wire values: which tokens were left to draw from, and which experts
were routed to. Both become sidecars; neither is required. Pure."""

from __future__ import annotations

import binascii
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stenograph.core import JSON, Ids, Request
from stenograph.engine.evidence import LARGEST_ID
from stenograph.errors import EvidenceError


def told_from(request: Request) -> int:
    """The first token of the prompt whose routing is not on record: the path's last one, which was sampled last and had
    not been computed when it was."""
    return max(request.path - 1, 0)


def support_of(where: str, rows: JSON) -> tuple[Ids, ...] | None:
    """One row a token."""
    if rows is None:
        return None
    if not isinstance(rows, list) or not all(isinstance(row, list) and _are_ids(row) for row in rows):
        raise EvidenceError(f"{where}: its sampling mask is not a row of token ids a token")
    return tuple(np.array(row, np.int32) for row in rows)


def _are_ids(row: Sequence[JSON]) -> bool:
    return all(type(id) is int and 0 <= id <= LARGEST_ID for id in row)


def experts_in_npy(where: str, text: str | None) -> NDArray[Any] | None:
    """vLLM's: a row a token, layer by layer."""
    if text is None:
        return None
    try:
        experts: NDArray[Any] = np.load(io.BytesIO(binascii.a2b_base64(text)), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise EvidenceError(f"{where}: its routed experts are no array: {error}") from error
    return experts


def experts_in_raw(where: str, text: str | None, rows: int) -> NDArray[Any] | None:
    """SGLang's: int32 without a shape. How many layers there are the reader has to know."""
    if text is None:
        return None
    try:
        flat = np.frombuffer(binascii.a2b_base64(text), "<i4")
        return flat.reshape(rows, -1) if rows else flat.reshape(0, 0)
    except ValueError as error:
        raise EvidenceError(f"{where}: its routed experts are not {rows} rows: {error}") from error
