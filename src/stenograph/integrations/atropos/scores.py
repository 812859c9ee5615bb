"""How likely each token of a prompt is, in Atropos' three arrays: one row a token, and all rows of one length.

Nothing stands before the first token, so nothing is known of it: its row has ids -1 and logprobs 0.0, as a sample's
teachers have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stenograph.core import JSON
from stenograph.engine.scoring import Scoring
from stenograph.errors import CallerError, EvidenceError
from stenograph.gateway import Gateway

IDS, LOGPROBS = "prompt_topk_token_ids", "prompt_topk_logprobs"
NO_ID, NO_LOGPROB = -1, 0.0


async def of_server(server: Any, fields: Mapping[str, JSON]) -> dict[str, Any]:
    if not hasattr(server, "get_logprobs"):
        raise NotImplementedError(f"{type(server).__name__} does not implement get_logprobs")
    return rectangular(await server.get_logprobs(**fields))


async def of_engine(gateway: Gateway, fields: Mapping[str, JSON]) -> dict[str, Any]:
    """Of an engine of ours that can score."""
    engine = gateway.engines[0]
    if not isinstance(engine, Scoring):
        raise NotImplementedError(f"{type(engine).__name__} does not score, so it has no get_logprobs")
    prompt = fields.get("input_ids")
    if prompt is None:
        prompt = gateway.renderer.tokenizer.encode(str(fields.get("prompt", "")), special=True)
    if not prompt:
        raise CallerError("prompt: messages, a prompt or input_ids are needed", param="prompt")
    top_k = max(1, int(fields.get("top_k") or fields.get("top_logprobs") or 1))
    scored = await engine.score(np.array(prompt, np.int32), top_k)
    return rectangular(
        {
            "prompt_tokens": list(prompt),
            IDS: [[NO_ID] * top_k, *scored.top_ids.tolist()],
            LOGPROBS: [[NO_LOGPROB] * top_k, *scored.top_logprobs.tolist()],
        }
    )


def rectangular(told: JSON) -> dict[str, Any]:
    """Refuses anything that does not line up: a trainer would read another token's row."""
    if not isinstance(told, Mapping) or any(told.get(name) is None for name in ("prompt_tokens", IDS, LOGPROBS)):
        raise EvidenceError(f"get_logprobs answered without prompt_tokens, {IDS} and {LOGPROBS}")
    tokens, ids, logprobs = list(told["prompt_tokens"]), list(told[IDS]), list(told[LOGPROBS])
    width = max(map(len, filter(None, ids)), default=0)
    if ids and not ids[0]:
        ids[0], logprobs[0] = [NO_ID] * width, [NO_LOGPROB] * width
    for name, rows in ((IDS, ids), (LOGPROBS, logprobs)):
        _check(name, rows, len(tokens), width)
    return {**told, "prompt_tokens": tokens, IDS: ids, LOGPROBS: logprobs}


def _check(name: str, rows: Sequence[Any], count: int, width: int) -> None:
    if len(rows) != count:
        raise EvidenceError(f"{name}: {len(rows)} rows for {count} tokens")
    for place, row in enumerate(rows):
        if row is None or len(row) != width:
            raise EvidenceError(f"{name}[{place}]: {0 if row is None else len(row)} alternatives, elsewhere {width}")
