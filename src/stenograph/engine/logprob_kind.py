"""Which kind of logprobs an engine reports, found out by asking it twice.

Best alternatives of one token, once as the model has them and once at temperature 2 with top-k 2. All the same: raw,
however many are told. Else, a third one missing: reported after truncation; still there: after temperature. Which token
was sampled does not matter, unless it is all that is told: then no answer is an honest one.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable

import msgspec
import numpy as np

from stenograph.core import Delta, LogprobKind, Request, Sampling
from stenograph.errors import EngineError, EvidenceError

PROBE = "stenograph-probe"
"""How the ids of these requests begin, so that nobody takes them for a rollout's."""
TOP = 5
TOLERANCE = 0.1
"""In nats: two runs of one prompt differ by some hundredths in bfloat16; another temperature by tenths."""

LEFT = 2
"""Tokens that the second request leaves to draw from."""

PLAIN = Request(
    id=f"{PROBE}-plain",
    session_id=PROBE,
    prompt=np.array([10, 11, 12], np.int32),
    sampling=Sampling(max_tokens=1, seed=0),
    top_logprobs=TOP,
)
"""Of ids that every vocabulary has. The seed is for engines whose odds are made up."""
WARM = msgspec.structs.replace(
    PLAIN, id=f"{PROBE}-warm", sampling=Sampling(max_tokens=1, seed=0, temperature=2.0, top_k=LEFT)
)


def is_probe(request: Request) -> bool:
    return request.id.startswith(PROBE)


async def probe(name: str, generate: Callable[[Request], AsyncIterator[Delta]]) -> LogprobKind:
    plain, warm = await _row(name, generate(PLAIN)), await _row(name, generate(WARM))
    if sum(map(math.exp, plain.values())) > 1 + TOLERANCE:
        raise EngineError(f"{name} reports logprobs that sum to more than 1: are they logits?")
    shared = plain.keys() & warm.keys()
    if shared and all(abs(plain[id] - warm[id]) < TOLERANCE for id in shared):
        return "raw"
    if len(plain) <= LEFT:
        raise EngineError(
            f"{name} tells {len(plain)} of {TOP} alternatives: what its logprobs are of cannot be found out"
        )
    return "processed" if len(warm) < len(plain) else "temperature"


async def _row(name: str, deltas: AsyncIterator[Delta]) -> dict[int, float]:
    try:
        rows = [row async for delta in deltas for row in delta.top or ()]
    except EvidenceError as error:
        raise EvidenceError(f"{name} cannot be used, its answer to a probe says why: {error.message}") from error
    if not rows:
        raise EngineError(f"{name} answers without the top logprobs that it was asked for")
    return {one.token_id: one.logprob for one in rows[0]}
