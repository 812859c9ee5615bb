"""A trainer on this event loop, as far as an executor sees of one: an engine, a tokenizer, and how it is called."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import tokenizers

from stenograph.assets import smollm2
from stenograph.assets.load import load_tokenizer
from stenograph.engine.log import LoggedCall
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.integrations.openrlhf.episode import SessionId
from stenograph.integrations.openrlhf.executor import Executor
from stenograph.render.template import Template
from tests.live.openrlhf.stubs.vllm import AsyncLLMEngine, SamplingParams

FILES = smollm2.read()
TOKENIZER = load_tokenizer(FILES)
MAX_LENGTH = 256


class HfTokenizer:
    """As much of a `PreTrainedTokenizerFast` as is asked for."""

    def __init__(self, chat_template: str | None = FILES.chat_template) -> None:
        self.backend_tokenizer = tokenizers.Tokenizer.from_str(FILES.tokenizer_json)
        self.chat_template = chat_template
        self.name_or_path = "held"
        self.special_tokens_map = dict(FILES.special_tokens)
        self.model_max_length = 2048
        self.eos_token_id = 2

    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        return {"input_ids": self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens).ids}

    def apply_chat_template(self, messages: Any, tokenize: bool, add_generation_prompt: bool) -> str:
        template = Template(self.chat_template or "", FILES.special_tokens)
        return template.render(messages, [], {}, generate=add_generation_prompt, now=datetime.datetime.now())


class LlmEngine:
    """`RolloutRayActor`, less Ray."""

    def __init__(self, script: Script | None = None, **kwargs: Any) -> None:
        self.kwargs = {"logprobs_mode": "processed_logprobs", **kwargs}
        self.llm = AsyncLLMEngine(ScriptedEngine(script or Script(cut=1.0, longest=8), TOKENIZER), TOKENIZER)

    @property
    def calls(self) -> list[LoggedCall]:
        return self.llm.engine.calls

    async def generate(self, prompt: list[int], params: SamplingParams, multi_modal_data: None = None) -> Any:
        outputs = [output async for output in self.llm.generate({"prompt_token_ids": prompt}, params, "id")]
        return outputs[-1]


Play = Callable[["Player", str, SessionId], Awaitable[Any]]


class Player(Executor):
    """Does not call our constructor, as no subclass need."""

    def __init__(self, play: Play) -> None:
        self.play = play

    async def run_agent(self, prompt: str, label: Any, session_id: SessionId) -> Mapping[str, Any] | None:
        said: Mapping[str, Any] | None = await self.play(self, prompt, session_id)
        return said

    async def ask(self, *contents: str, **fields: Any) -> Any:
        roles = ("user", "assistant")
        messages = [{"role": roles[place % 2], "content": content} for place, content in enumerate(contents)]
        return await self.client.chat.completions.create(model=self.model_name, messages=messages, **fields)


async def asks_once(player: Player, prompt: str, session_id: SessionId) -> dict[str, Any]:
    await player.ask(prompt)
    return {"reward": 1.0}


def wanted(**changes: Any) -> SamplingParams:
    """As `SamplesGenerator` makes it."""
    usual = {"temperature": 0.75, "top_k": -1, "max_tokens": None, "min_tokens": 1, "logprobs": 1}
    return SamplingParams(**{**usual, "skip_special_tokens": False, **changes})


async def rollouts(player: Executor, engine: LlmEngine, count: int = 1, **changes: Any) -> list[dict[str, Any]]:
    """Of one prompt, as `RolloutRayActor.generate_responses` gathers them."""
    arguments = {
        "prompt": "What is it like?",
        "label": "rain",
        "sampling_params": wanted(),
        "max_length": MAX_LENGTH,
        "hf_tokenizer": HfTokenizer(),
        "llm_engine": engine,
        "images": None,
        **changes,
    }
    return await asyncio.gather(*(player.execute(**arguments) for _ in range(count)))
