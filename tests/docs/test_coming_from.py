"""The pages of docs/from: what stands before and after in them are programs, and they run.

The engine is scripted, and samples tokens that no tokenizer would give. A gateway stands for the vLLM of a program
that comes before: it tells tokens in the same fields.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from stenograph.engine.script import Rule, Script
from tests.conftest import NO_TOKENIZERS, ROOT, TOKENIZERS
from tests.live.consumers.installed import printed, python
from tests.live.processes import engine, gateway, killed

PAGES = ROOT / "docs" / "from"
FAMILY = TOKENIZERS / "qwen2.5"
SCRIPT = Script(
    model="policy",
    cut=1.0,
    rules=(
        Rule(when="It rains in Paris|Are you sure", say=" It rains, therefore take an umbrella."),
        Rule(when='"name": "look"', say='<tool_call>\n{"name":"look","arguments":{"city":  "Paris"}}\n</tool_call>'),
        Rule(when="", say="It rains, tokenization or not.\n"),
    ),
)
HERE = Path(sys.executable)
AT = re.compile(r"http://127\.0\.0\.1:\d+")


def program(page: str, heading: str, folder: Path, url: str) -> Path:
    """The first one under this heading, with its server at this address."""
    section = (PAGES / page).read_text().partition(f"\n## {heading}\n")[2]
    text = section.partition("```python\n")[2].partition("\n```")[0]
    assert text
    found = folder / f"{heading.lower()}.py"
    found.write_text(AT.sub(url, text))
    return found


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    """Of a gateway."""
    if not FAMILY.is_dir():
        pytest.skip(NO_TOKENIZERS)
    async with (
        engine(tmp_path, "engine", FAMILY, SCRIPT) as sampling,
        gateway(sampling, FAMILY, tmp_path / "store") as root,
    ):
        yield root


async def lines(interpreter: Path, found: Path) -> list[str]:
    return (await printed(interpreter, found)).decode().splitlines()


async def require_one_branch_each(url: str, sessions: int, turns: int) -> None:
    async with httpx2.AsyncClient(base_url=url) as client:
        told = (await client.get("/sessions")).json()["sessions"]
    assert [(one["turns"], one["branches"], one["reward"]) for one in told] == [(turns, 1, 1.0)] * sessions


def test_every_page_is_in_the_index() -> None:
    index = (PAGES / "README.md").read_text()
    pages = [page.name for page in PAGES.glob("*.md") if page.name != "README.md"]
    assert [page for page in pages if f"({page})" not in index] == []


@pytest.mark.live
async def test_verifiers(tmp_path: Path, url: str) -> None:
    before, after = (program("verifiers.md", heading, tmp_path, url) for heading in ("Before", "After"))
    interpreter = python("verifiers-0.3.1")
    said = await lines(interpreter, after)
    assert all(re.fullmatch(r"1\.0 \[\d+, \d+\]", line) for line in said)
    assert len(said) == 4
    await require_one_branch_each(url, sessions=4, turns=2)
    assert len(await lines(interpreter, before)) == 4


@pytest.mark.live
async def test_agent_lightning(tmp_path: Path, url: str) -> None:
    said = await lines(HERE, program("agent-lightning.md", "After", tmp_path, url))
    assert all(re.fullmatch(r"1\.0 [1-9]\d* [1-9]\d*", line) for line in said)
    assert len(said) == 4
    await require_one_branch_each(url, sessions=4, turns=2)
    compile(program("agent-lightning.md", "Before", tmp_path, url).read_text(), "before", "exec")  # it wants GPUs


@pytest.mark.live
async def test_rllm(tmp_path: Path, url: str) -> None:
    (line,) = await lines(HERE, program("rllm.md", "After", tmp_path, url))
    assert re.fullmatch(r"1\.0 [1-9]\d* [1-9]\d*", line)
    await require_one_branch_each(url, sessions=1, turns=2)
    interpreter = python("rllm")
    async with rllm_gateway(interpreter, tmp_path, url) as theirs:
        said = await lines(interpreter, program("rllm.md", "Before", tmp_path, theirs))
    assert 1 <= len(said) <= 2  # it records after it has answered: the last call may not be there yet
    assert all(re.fullmatch(r"1\.0 [1-9]\d* ([1-9]\d*) \1", line) for line in said)


@asynccontextmanager
async def rllm_gateway(interpreter: Path, folder: Path, worker: str) -> AsyncIterator[str]:
    """rLLM's own. It logs where it is."""
    where = ("--host", "127.0.0.1", "--port", "0", "--db-path", str(folder / "traces.db"), "--worker", f"{worker}/v1")
    started = await asyncio.create_subprocess_exec(
        *(str(interpreter), "-m", "rllm_model_gateway", *where),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert started.stderr is not None
    try:
        while not (found := re.search(rb"running on (http://[\d.:]+)", await started.stderr.readline())):
            assert started.returncode is None
        yield found[1].decode()
    finally:
        await killed(started)
