"""The trainer's `llm_engine` as a sampler of ours: ids in; ids, and the logprob of each, out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from stenograph.core import JSON, LogprobKind, Sampling
from stenograph.engine import vllm_wire
from stenograph.engine.evidence import best_first
from stenograph.engine.given import Answer
from stenograph.errors import ConfigError, EngineError

SUPPORTS = frozenset(vllm_wire.SUPPORTS)
MAX_TOP_LOGPROBS = 1
"""Where OpenRLHF corrects for its rollouts it starts vLLM with `max_logprobs=1`."""
TEXT = {"skip_special_tokens": False, "spaces_between_special_tokens": False, "include_stop_str_in_output": False}
"""Stop strings are looked for in what was sampled."""
KINDS: Mapping[str, LogprobKind] = {"raw_logprobs": "raw", "processed_logprobs": "processed"}
"""By vLLM's `logprobs_mode`."""


def logprob_kind(llm_engine: Any) -> LogprobKind:
    """OpenRLHF's actor keeps what it started vLLM with. vLLM's own default is `raw_logprobs`."""
    mode = (getattr(llm_engine, "kwargs", None) or {}).get("logprobs_mode") or "raw_logprobs"
    if mode not in KINDS:
        raise ConfigError(f"vLLM was started with logprobs_mode={mode}, which are no logprobs: nothing can be recorded")
    return KINDS[mode]


def defaults_of(params: Any) -> dict[str, JSON]:
    """The trainer's sampling, as a session's `defaults`: it holds where the agent says nothing."""
    values = {name: getattr(params, name, None) for name in vllm_wire.SUPPORTS}
    return {name: value for name, value in values.items() if value not in (None, [], {}, ())}


class TrainersEngine:
    def __init__(self, llm_engine: Any, params: type) -> None:
        self._llm_engine = llm_engine
        self._params = params

    async def generate(self, prompt: list[int], sampling: dict[str, Any]) -> Answer:
        top = sampling["top_logprobs"]
        output = await self._llm_engine.generate(prompt, self._params(**fields(sampling)), multi_modal_data=None)
        if output is None or len(output.outputs) != 1:
            raise EngineError("the trainer's engine did not answer with one output")
        (said,) = output.outputs
        ids = list(said.token_ids)
        rows = [_row(row) for row in said.logprobs or ()]
        return {
            "token_ids": ids,
            "logprobs": _of_sampled(ids, rows),
            "top_logprobs": [best_first(row, top) for row in rows] if top else None,
            "finish_reason": said.finish_reason,
            "stop_reason": getattr(said, "stop_reason", None),
        }


def fields(sampling: Mapping[str, Any]) -> dict[str, JSON]:
    """Every parameter is written out; a new object of vLLM's own class, which checks them when it is made."""
    wire = vllm_wire.sampling_fields(msgspec.convert(sampling, Sampling))
    return {
        **wire,
        **TEXT,
        "top_k": wire["top_k"] or -1,
        "stop": list(wire["stop"]),
        "stop_token_ids": list(wire["stop_token_ids"]),
        "logit_bias": wire["logit_bias"] or None,
        "n": 1,
        "logprobs": max(1, sampling["top_logprobs"]),
    }


def _row(told: Mapping[int, Any] | None) -> dict[int, float]:
    return {id: one.logprob for id, one in (told or {}).items()}


def _of_sampled(ids: Sequence[int], rows: Sequence[Mapping[int, float]]) -> list[Any]:
    """As many as were told. What is missing stays missing: whoever checks the evidence says so."""
    return [row.get(id) for row, id in zip_longest(rows, ids[: len(rows)])]
