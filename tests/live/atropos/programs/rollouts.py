"""Rollouts as an environment of Atropos' makes them: its own `ServerManager` and `VLLMServer`, transformers' tokenizer,
and a vLLM as its example trainer serves one, which samples a letter at a time and ends with the stop token.

Prints what that server was sent and said, and the nodes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "src"))

from aiohttp import web
from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from atroposlib.envs.server_handling.server_manager import ServerManager

from stenograph.integrations.atropos import managed_server

LINES = [["Hello there"], ["And again"], ["Yes", "Yes sir"], ["Indeed"]]
CLOSE = "<|im_end|>"
ASKED = {"role": "user", "content": "How many?"}


class Vllm:
    def __init__(self) -> None:
        self.lines = list(LINES)
        self.tokenizer: Any = None
        self.calls: list[dict[str, Any]] = []

    async def generate(self, request: web.Request) -> web.Response:
        asked = await request.json()
        said = [self._ids(line) for line in self.lines.pop(0)]
        told = [[-0.125 * (place + 1) for place in range(len(ids))] for ids in said]
        self.calls.append({"sent": asked["prompt"]["prompt_token_ids"], "said": said, "told": told})
        columns = zip(said, told, strict=True)
        rows = [[[{str(id): logprob}] for id, logprob in zip(*column, strict=True)] for column in columns]
        return web.json_response({"logprobs": rows, "finish_reasons": ["stop"] * len(said)})

    def _ids(self, line: str) -> list[int]:
        letters = [id for letter in line for id in self.tokenizer.encode(letter, add_special_tokens=False)]
        return [*letters, self.tokenizer.convert_tokens_to_ids(CLOSE)]


async def served(vllm: Vllm) -> str:
    app = web.Application()
    app.router.add_post("/generate", vllm.generate)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}/v1"


async def main(folder: str) -> None:
    vllm = Vllm()
    config = APIServerConfig(
        server_type="vllm", base_url=await served(vllm), model_name=folder, api_key="x", health_check=False
    )
    manager = ServerManager([config])
    vllm.tokenizer = manager.servers[0].tokenizer
    async with managed_server(manager, tokenizer=vllm.tokenizer) as managed:
        answer = await managed.chat_completion(messages=[ASKED], max_tokens=64)
        history = [ASKED, answer.choices[0].message, ASKED]
        await managed.chat_completion(messages=history, max_tokens=64, split="eval")
        await managed.completion(prompt="Is it so? ", n=2, max_tokens=64)
        await managed.completion(prompt="Is it so? Yes sir, says he. ", max_tokens=64)
        nodes = [node.model_dump() for node in managed.get_state()["nodes"]]
    print(json.dumps({"calls": vllm.calls, "nodes": nodes, "evals": len(manager.servers[0].eval_attempts_list)}))


asyncio.run(main(sys.argv[1]))
