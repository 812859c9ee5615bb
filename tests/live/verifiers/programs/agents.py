"""Rollouts of verifiers 0.4.0's own agents with its train client: `python agents.py ROOT TOKENIZER`.

Its harnesses are programs of their own, which speak to its interception server; that renders, and sends ids to
`/inference/v1/generate`. ROOT is a gateway's. Prints, as JSON, what verifiers keeps: a trace each.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import verifiers.v1 as vf
from renderers import Qwen3RendererConfig
from verifiers.v1.harnesses.bash.harness import BashHarnessConfig
from verifiers.v1.harnesses.null.harness import NullHarnessConfig
from verifiers.v1.runtimes.base import Runtime


async def installed_already(self: Runtime, script: str, env: Any = None, *, activate: bool = True) -> list[str]:
    """What its programs need is in this very environment; verifiers would have uv download it into one of its own."""
    await self.write("program.py", script.encode())
    return [sys.executable, "program.py"]


Runtime.prepare_uv_script = installed_already


class Outside(vf.Task[vf.TaskData]):
    @vf.reward
    async def umbrella(self, trace: vf.Trace) -> float:
        return 1.0 if "umbrella" in (trace.last_reply or "") else 0.25


def agent(root: str, tokenizer: str, harness: vf.HarnessConfig) -> vf.Agent:
    renderer = Qwen3RendererConfig(thinking_retention="all")  # else it spells the history anew where a user speaks
    client = vf.TrainClientConfig(base_url=f"{root}/v1", renderer=renderer, renderer_model_name=tokenizer)
    sampling = {"temperature": 0.7, "max_tokens": 200}
    config = {"model": "policy", "client": client, "sampling": sampling, "harness": harness}
    return vf.Agent(vf.AgentConfig(**config, runtime=vf.SubprocessConfig()))


def task(prompt: str | None) -> Outside:
    return Outside(vf.TaskData(idx=0, prompt=prompt, system_prompt="Be short."), vf.TaskConfig())


async def single(root: str, tokenizer: str) -> vf.Trace:
    return await agent(root, tokenizer, NullHarnessConfig(id="null")).run(task("What is it like in Paris?"))


async def multi(root: str, tokenizer: str) -> vf.Trace:
    """The caller is the user."""
    async with agent(root, tokenizer, NullHarnessConfig(id="null")).interaction(task(None)) as talk:
        for question in ("What is it like in Paris?", "And now?", "Thank you."):
            await talk.turn(question)
    return talk.trace


async def tool(root: str, tokenizer: str) -> vf.Trace:
    """The model calls a shell."""
    return await agent(root, tokenizer, BashHarnessConfig(id="bash", edit=False)).run(task("Look outside."))


def kept(kind: str, trace: vf.Trace) -> dict[str, Any]:
    if trace.errors:
        raise RuntimeError(f"{kind}: {trace.errors}")
    branches = [
        {
            "tokens": branch.token_ids,
            "sampled": [int(mark) for mark in branch.sampled_mask],
            "logprobs": branch.logprobs,
        }
        for branch in trace.branches
    ]
    return {"kind": kind, "session": trace.id, "reward": trace.reward, "calls": len(trace.calls), "branches": branches}


async def main(root: str, tokenizer: str) -> None:
    kinds = (single, multi, tool)
    traces = await asyncio.gather(*(kind(root, tokenizer) for kind in kinds))
    print(json.dumps([kept(kind.__name__, trace) for kind, trace in zip(kinds, traces, strict=True)]))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
