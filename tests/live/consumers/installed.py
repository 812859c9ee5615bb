"""Who reads what we write, each in an environment of its own; `install` beside this makes them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

HOME = Path(os.environ.get("STENOGRAPH_AGENTS") or Path.home() / ".cache" / "stenograph-agents")


def python(name: str) -> Path:
    """Its interpreter."""
    found = HOME / name / "bin" / "python"
    if not (HOME / name / ".installed").exists():
        pytest.skip(f"{name} is not installed: tests/live/consumers/install {name}")
    return found


async def run(name: str, program: Path, *arguments: str, said: bytes = b"") -> bytes:
    """What a program of ours prints there."""
    return await printed(python(name), program, *arguments, said=said)


async def printed(interpreter: Path, program: Path, *arguments: str, said: bytes = b"") -> bytes:
    """The loop goes on meanwhile: a gateway may be served on it."""
    process = await asyncio.create_subprocess_exec(
        *(str(interpreter), "-P", str(program), *arguments),
        env={"HOME": str(interpreter.parents[1]), "PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, complaints = await process.communicate(said)
    assert process.returncode == 0, complaints.decode()
    return output
