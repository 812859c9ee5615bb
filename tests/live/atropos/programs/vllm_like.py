"""A vLLM as Atropos' example trainer serves one. It samples a letter at a time, and ends with the stop token."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from atroposlib.envs.server_handling.server_manager import ServerManager

CLOSE = "<|im_end|>"


class Vllm:
    def __init__(self, lines: list[list[str]]) -> None:
        """What it says, call by call; so many choices."""
        self.lines = lines
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


async def managed_by_theirs(vllm: Vllm, folder: str) -> ServerManager:
    """Their own server and manager before it, with transformers' tokenizer of that folder."""
    config = APIServerConfig(
        server_type="vllm", base_url=await served(vllm), model_name=folder, api_key="x", health_check=False
    )
    manager = ServerManager([config])
    vllm.tokenizer = manager.servers[0].tokenizer
    return manager
