"""Real agents, each in a network in which there is nothing but a gateway of this process.

Behind the gateway is the scripted engine, whose tokens are not the ones that a tokenizer would give; its own log is
what the record is compared with. Every agent is set the same task: files are to be read one after the other, by
whatever tool the agent has, and the last of them holds the word that it must come back with.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
import uvicorn
from msgspec import field

from stenograph.core import JSON, Conversation, Message, ToolCall, Value
from stenograph.engine.script import Rule, Script
from stenograph.render.writing import ReplyWriter
from stenograph.store.memory import MemoryStore
from tests.conftest import ROOT
from tests.laws.checks import check_session
from tests.stage.models import LOOK, Model
from tests.stage.stage import Stage

FAMILY = "qwen2.5"
"""Its template writes tools, and appends whatever is new."""
CONTEXT = 131_072
"""An agent's instructions alone may be 20k tokens."""
PORT = 9000
"""In the agent's own network every port is free."""
HERE = Path(__file__).parent
HOME = Path(os.environ.get("STENOGRAPH_AGENTS") or Path.home() / ".cache" / "stenograph-agents")
PATIENCE = 180.0
"""Seconds for a whole rollout: real agents start slowly, on two busy cores."""

FILES = {"first.txt": "Look into second.txt instead.\n", "second.txt": "The word is marmalade.\n"}
TASK = "Which word is hidden in the files? Read first.txt to begin with."
ANSWER = "marmalade"
Called: TypeAlias = tuple[str, dict[str, JSON]]
"""A tool's name, and its arguments."""


# -------------------------------------------------------------------------------------------------- what is installed


def python_agent(name: str) -> list[str]:
    """The command that runs one of `programs/`, which have the names of the packages that they import (hence -P)."""
    found = HOME / "python" / "bin" / "python"
    return [_installed(found, "python"), "-P", str(HERE / "programs" / f"{name}.py")]


def node_agent(name: str) -> list[str]:
    return [_installed(HOME / "node" / "node_modules" / ".bin" / name, "node")]


def _installed(found: Path, kind: str) -> str:
    if not found.exists():
        pytest.skip(f"the agents are not installed: tests/live/agents/install {kind}")
    return str(found)


@functools.cache
def _sealing() -> str:
    """The command that makes a network."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network of its own for an agent: `unshare -rn` does not work here")
    return unshare


# -------------------------------------------------------------------------------------------------- what the model says


def saying(said: Model, content: str | None = None, *calls: Called) -> str:
    """A reply, as a model of this family would write it."""
    renderer = said.house.renderer
    family = renderer.family(Conversation((), tools=(LOOK,)))
    called = tuple(ToolCall(f"zzzzzzzz{place}", name, arguments) for place, (name, arguments) in enumerate(calls))
    writer = ReplyWriter(family, renderer.eos)
    return writer.write(Message("assistant", content, tool_calls=called), thinking=False, close="")


class Ways(Value):
    """What the model has to call so that an agent does something."""

    read: Callable[[str], Called]
    """A file, by its name."""
    answer: Callable[[str], Called] | None = None
    """None: it simply says so."""
    silent: bool = False
    """The agent requires a call, so nothing may be said beside it."""
    aside: tuple[Rule, ...] = ()
    """What is said to calls that are not part of the task."""


def solving(said: Model, ways: Ways) -> tuple[Rule, ...]:
    """The task solved step by step. A rule looks at the end of the prompt, so the last step comes first."""
    answer = f"The word is {ANSWER}."
    return (
        *ways.aside,
        Rule(
            when=re.escape(FILES["second.txt"].strip()),
            say=saying(said, None, ways.answer(answer)) if ways.answer else saying(said, answer),
        ),
        Rule(
            when=re.escape(FILES["first.txt"].strip()),
            say=saying(said, None if ways.silent else "On to the next.", ways.read("second.txt")),
        ),
        Rule(when="", say=saying(said, None, ways.read("first.txt"))),
    )


# ------------------------------------------------------------------------------------------------------------- running


class Rollout(Value):
    """What one session holds: a row of docs/AGENTS.md."""

    turns: int
    samples: int
    forks: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    protocols: tuple[str, ...] = ("chat",)


COLUMNS = 7
"""Of the table of those that are driven here; another one lists agents that were only tried."""


def documented(agent: str) -> Rollout:
    """What the table of docs/AGENTS.md says of an agent: what users read is what is tested."""
    lines = (ROOT / "docs" / "AGENTS.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith(f"| {agent} |")]
    ((_, _, protocols, turns, samples, forks, notes),) = [row for row in rows if len(row) == COLUMNS]
    return Rollout(int(turns), int(samples), _counts(forks), _counts(notes), tuple(protocols.split(", ")))


def _counts(cell: str) -> dict[str, int]:
    return {name: int(count) for name, count in map(str.split, filter(None, cell.split(", ")))}


class Rig:
    """A gateway that an agent can reach, and a folder that the agent works in."""

    def __init__(self, stage: Stage, door: Path, folder: Path) -> None:
        self.stage = stage
        self.folder = folder
        self._door = door

    def root(self, session: str) -> str:
        """Of a session; OpenAI's clients want `/v1` behind it."""
        return f"http://127.0.0.1:{PORT}/s/{session}"

    async def run(self, command: list[str], env: Mapping[str, str]) -> str:
        """The agent's output. It sees of this machine's environment only what it is given, and where programs are."""
        home = {"HOME": str(self.folder), "TMPDIR": str(self.folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        process = await asyncio.create_subprocess_exec(
            *(_sealing(), "-rn", sys.executable, str(HERE / "sealed.py"), str(PORT), str(self._door), "--", *command),
            cwd=self.folder / "work",
            env={**home, **env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        assert process.returncode == 0, output.decode(errors="replace")
        return output.decode(errors="replace")

    async def rollout(self, session: str) -> Rollout:
        """Every law on the session, and its figures."""
        record = await check_session(self.stage, session)
        assert self.stage.witness.breaches == []
        told = await self.stage.get(f"/sessions/{session}")
        return Rollout(
            turns=told["turns"],
            samples=len((await self.stage.get(f"/sessions/{session}/samples"))["samples"]),
            forks=told["forks"],
            notes=told["notes"],
            protocols=tuple(sorted({call.protocol for call in record.calls})),
        )


@asynccontextmanager
async def rigged(said: Model, folder: Path, ways: Ways) -> AsyncIterator[Rig]:
    script = Script(max_model_len=CONTEXT, rules=solving(said, ways))
    (folder / "work").mkdir()
    for name, text in FILES.items():
        (folder / "work" / name).write_text(text)
    door = folder / "door"
    async with Stage(said, MemoryStore(), script) as stage, _open(stage, door):
        yield Rig(stage, door, folder)


@asynccontextmanager
async def _open(stage: Stage, door: Path) -> AsyncIterator[None]:
    config = uvicorn.Config(stage.witness, log_level="critical", lifespan="off", ws="none", http="httptools")
    server = uvicorn.Server(config)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(door))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield
        finally:
            server.should_exit = True
            await serving
