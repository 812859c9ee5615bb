"""The two blocks of docs/from/atropos.md, each as an environment's method: what the engine was sent and said, and what
is handed to the trainer."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from vllm_like import Vllm, managed_by_theirs

ROOT = Path(__file__).resolve().parents[4]


async def played(block: str, folder: str) -> dict[str, Any]:
    defined: dict[str, Any] = {}
    exec(block, defined)
    vllm = Vllm([["Four apples"], ["Quite sure"]])
    manager = await managed_by_theirs(vllm, folder)
    environment = SimpleNamespace(server=manager, tokenizer=vllm.tokenizer)
    rows = await defined["collect_trajectories"](environment, {"question": "How many?"})
    return {"calls": vllm.calls, "rows": rows}


async def main(folder: str) -> None:
    page = (ROOT / "docs" / "from" / "atropos.md").read_text()
    blocks = dict(re.findall(r"```python\n# (before|after)\n(.*?)```", page, re.DOTALL))
    print(json.dumps({name: await played(block, folder) for name, block in blocks.items()}))


asyncio.run(main(sys.argv[1]))
