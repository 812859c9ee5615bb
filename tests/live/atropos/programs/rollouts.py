"""Rollouts as an environment of Atropos' makes them: its own `ServerManager`, with our method, and `VLLMServer`.

Prints what the engine was sent and said, and the nodes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from atroposlib.envs.server_handling.server_manager import ServerManager
from vllm_like import Vllm, managed_by_theirs

from stenograph.integrations.atropos import managed_server

LINES = [["Hello there"], ["And again"], ["Yes", "Yes sir"], ["Indeed"]]
ASKED = {"role": "user", "content": "How many?"}


async def main(folder: str) -> None:
    vllm = Vllm(LINES)
    manager = await managed_by_theirs(vllm, folder)
    ServerManager.managed_server = managed_server
    async with manager.managed_server(tokenizer=vllm.tokenizer) as managed:
        answer = await managed.chat_completion(messages=[ASKED], max_tokens=64)
        history = [ASKED, answer.choices[0].message, ASKED]
        await managed.chat_completion(messages=history, max_tokens=64, split="eval")
        await managed.completion(prompt="Is it so? ", n=2, max_tokens=64)
        await managed.completion(prompt="Is it so? Yes sir, says he. ", max_tokens=64)
        nodes = [node.model_dump() for node in managed.get_state()["nodes"]]
    print(json.dumps({"calls": vllm.calls, "nodes": nodes, "evals": len(manager.servers[0].eval_attempts_list)}))


asyncio.run(main(sys.argv[1]))
