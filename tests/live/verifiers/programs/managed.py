"""The environments of `classic.py`, each rollout over the client of a managed server of its own, in this process:
`python managed.py TOKENIZER SCRIPT LOG`. Nothing of tokens is asked for. Prints what verifiers keeps, and the nodes."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "src"))
sys.path.append(str(Path(__file__).resolve().parent))

import verifiers as vf
from classic import ANEW, environments, kept

from stenograph import Gateway
from stenograph.integrations.atropos import ManagedClient, ManagedServer


async def main(folder: str, script: str, log: str) -> None:
    told = []
    async with Gateway(engine=f"scripted={script}", tokenizer=folder, log=Path(log)) as gateway:
        for kind, environment in environments().items():
            managed = ManagedServer(gateway)
            client: Any = ManagedClient(managed, "policy")
            asked = environment.get_eval_dataset().to_list()[0]
            state = await environment.rollout(
                asked, vf.OpenAIChatCompletionsClient(client) if ANEW else client, "policy", {"max_tokens": 200}
            )
            nodes = [node.model_dump() for node in managed.get_state()["nodes"]]
            told.append({**kept(kind, kind, state), "nodes": nodes})
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
