"""What the scripted engine tells beside its tokens: made up of the ids alone, so that whoever has them can check it."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def support(id: int) -> list[int]:
    """The tokens that could have been drawn in this one's place: one to three, itself among them."""
    return sorted({id, id // 2, id // 3} if id % 2 else {id})


def routing(ids: Sequence[int]) -> NDArray[Any]:
    """A row a token: two layers, of each two experts."""
    column = np.array(ids, np.int64)
    rows = np.stack([column % 7, column % 11, column % 13, column % 17], axis=-1)
    return rows.astype(np.uint8).reshape(-1, 2, 2)


def in_npy(array: NDArray[Any]) -> str:
    with io.BytesIO() as file:
        np.save(file, array, allow_pickle=False)
        return base64.b64encode(file.getvalue()).decode()
