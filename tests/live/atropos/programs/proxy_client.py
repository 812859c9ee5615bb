"""A rollout through Atropos' own proxy client, as `ServerManager(proxy_url=…)` hands it out, against a proxy of ours.

Prints the answers' texts and the nodes that its client has of them.
"""

from __future__ import annotations

import asyncio
import json
import sys

from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from atroposlib.envs.server_handling.server_manager import ServerManager

ASKED = [{"role": "user", "content": "How many?"}]


async def main(proxy_url: str, engine_url: str, tokenizer: str) -> None:
    config = APIServerConfig(
        model_name="policy", base_url=f"{engine_url}/v1", server_type="vllm", tokenizer_name=tokenizer, api_key="x"
    )
    manager = ServerManager([config], proxy_url=proxy_url, testing=False)
    async with manager.managed_server(base_url=f"{engine_url}/v1") as managed:
        first = await managed.chat_completion(messages=ASKED, max_tokens=16, n=2)
        said = first.choices[1].message.content
        history = [*ASKED, {"role": "assistant", "content": said}, {"role": "user", "content": "And then?"}]
        second = await managed.chat_completion(messages=history, max_tokens=16)
        nodes = (await managed.fetch_state())["nodes"]
        answers = [choice.message.content for answer in (first, second) for choice in answer.choices]
    print(json.dumps({"answers": answers, "nodes": [node.model_dump() for node in nodes]}))


asyncio.run(main(*sys.argv[1:]))
