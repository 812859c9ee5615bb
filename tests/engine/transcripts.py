"""vLLM's own bytes, taken down from release 0.32 with SmolLM2."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "transcripts" / "vllm"
PROMPT = [1, 9690, 198, 2683, 359, 253]
"""Of all of them; of `cached`, thirty times over."""


def transcript(name: str) -> bytes:
    return (FOLDER / f"{name}.sse").read_bytes()
