"""Rollouts of verifiers' classic environments (0.1.9 to 0.3.1) through its plain chat client: `python classic.py ROOT`.

ROOT is a gateway's. Run in the environment of the verifiers that it is about; prints, as JSON, what verifiers keeps.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx
import verifiers as vf
from datasets import Dataset
from openai import AsyncOpenAI
from verifiers.types import ClientConfig

ANEW = hasattr(vf, "OpenAIChatCompletionsClient")
"""0.3.1; before, environments were handed a bare `AsyncOpenAI`."""
SAMPLING = {"temperature": 0.7, "max_tokens": 200, "logprobs": True, "extra_body": {"return_token_ids": True}}
TASK = Dataset.from_list([{"question": "What is it like in Paris?", "answer": "It rains."}])
AT_ONCE = 2


def look(city: str) -> str:
    """Looks out of a window."""
    return f"It rains in {city}."


async def umbrella(completion: Any) -> float:
    """The reward."""
    last = completion[-1]
    said = last["content"] if isinstance(last, dict) else last.content
    return 1.0 if "umbrella" in said else 0.25


class Talk(vf.MultiTurnEnv):
    """Two more questions."""

    async def env_response(self, messages: Any, state: Any, **_: Any) -> Any:
        return [{"role": "user", "content": "And now?" if len(state["trajectory"]) == 1 else "Thank you."}]


class Named:
    """Before 0.3.1 a rollout names its session where its state is set up: a client is shared by all of them."""

    async def setup_state(self, state: Any) -> Any:
        state["client"] = state["client"].with_options(default_headers={"X-Session-ID": state["trajectory_id"]})
        return await super().setup_state(state)  # type: ignore[misc]


def environments(*before: type) -> dict[str, Any]:
    def made(kind: type, **options: Any) -> Any:
        rubric = vf.Rubric(funcs=[umbrella])
        named = type(kind.__name__, (*before, kind), {})
        return named(dataset=TASK, eval_dataset=TASK, system_prompt="Be short.", rubric=rubric, **options)

    return {
        "single": made(vf.SingleTurnEnv),
        "multi": made(Talk, max_turns=3),
        "tool": made(vf.ToolEnv, tools=[look]),
    }


async def shared(root: str) -> list[dict[str, Any]]:
    """As one evaluates or trains: one client for all, each rollout a session by its header. Then rewards are told."""
    client: Any = AsyncOpenAI(base_url=f"{root}/v1", api_key="EMPTY")
    if ANEW:
        client = ClientConfig(
            client_type="openai_chat_completions",
            api_base_url=f"{root}/v1",
            extra_headers_from_state={"X-Session-ID": "trajectory_id"},
        )
    told = []
    async with httpx.AsyncClient(base_url=root) as gateway:
        for kind, environment in environments(*(() if ANEW else (Named,))).items():
            results = await environment.evaluate(
                client, "policy", SAMPLING, rollouts_per_example=AT_ONCE, state_columns=["trajectory", "trajectory_id"]
            )
            for state in results["outputs" if ANEW else "state"]:
                session = state["trajectory_id"]
                reward = {"reward": state["reward"]}
                (await gateway.post(f"/sessions/{session}/reward", json=reward)).raise_for_status()
                told.append(kept(kind, session, state))
    return told


async def alone(root: str) -> list[dict[str, Any]]:
    """A client for each rollout, with its session in the path."""
    told = []
    for kind, environment in environments().items():
        session = f"alone-{kind}"
        client: Any = AsyncOpenAI(base_url=f"{root}/s/{session}/v1", api_key="EMPTY")
        asked = environment.get_eval_dataset().to_list()[0]
        state = await environment.rollout(
            asked, vf.OpenAIChatCompletionsClient(client) if ANEW else client, "policy", dict(SAMPLING)
        )
        told.append(kept(kind, session, state))
    return told


async def too_long(root: str) -> bool:
    """A prompt that does not fit: verifiers knows it by the words of the error, and ends the rollout as a long one."""
    client: Any = AsyncOpenAI(base_url=f"{root}/s/long/v1", api_key="EMPTY")
    asked = {"prompt": [{"role": "user", "content": "Why? " * 9000}], "example_id": 0}
    environment = environments()["single"]
    state = await environment.rollout(
        asked, vf.OpenAIChatCompletionsClient(client) if ANEW else client, "policy", dict(SAMPLING)
    )
    return state["error"] is None and state["prompt_too_long"] and not state["trajectory"]


def kept(kind: str, session: str, state: Any) -> dict[str, Any]:
    if state["error"] is not None:
        raise RuntimeError(f"{kind}: {state['error']!r}")
    columns = {"prompt": "prompt_ids", "sampled": "completion_ids", "logprobs": "completion_logprobs"}
    steps = [{name: list(step["tokens"][theirs]) for name, theirs in columns.items()} for step in state["trajectory"]]
    return {"kind": kind, "session": session, "reward": state["reward"], "steps": steps}


async def main() -> None:
    root = sys.argv[1]
    rollouts = [*await shared(root), *await alone(root)]
    print(json.dumps({"rollouts": rollouts, "knows_too_long": await too_long(root)}))


if __name__ == "__main__":
    asyncio.run(main())
