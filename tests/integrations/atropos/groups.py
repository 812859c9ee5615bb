"""Scored groups, made up, each with its own number in it."""

from __future__ import annotations

from typing import Any


def group(number: int, *, size: int = 2, length: int = 4) -> dict[str, Any]:
    return {
        "tokens": [[number] * length for _ in range(size)],
        "masks": [[-100] + [number] * (length - 1) for _ in range(size)],
        "scores": [float(place) for place in range(size)],
        "inference_logprobs": [[1.0] + [-0.25] * (length - 1) for _ in range(size)],
    }


def number_of(group: dict[str, Any]) -> int:
    number: int = group["tokens"][0][0]
    return number
