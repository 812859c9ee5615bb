"""What is left of a generation that was broken off, and whether going on from there samples as if nothing had been.

It does where each token depends on the ids before it alone. Penalties count sampled tokens apart from the prompt, a
seed counts from the first token, a guide and a half-said stop string have a state that ids in a prompt don't carry.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from stenograph.core import NEUTRAL, Request, Sampling
from stenograph.render.tokenizer import Tokenizer

STATEFUL = ("presence_penalty", "frequency_penalty", "repetition_penalty", "seed", "guide")
TOKENS_A_CHARACTER = 4
"""At most, in any vocabulary that falls back to bytes."""


def continues_alike(sampling: Sampling, ids: Sequence[int], tokenizer: Tokenizer | None) -> bool:
    """`ids`: what was sampled so far; where that is nothing, the request can simply be sent again."""
    if not ids:
        return True
    stateless = all(getattr(sampling, name) == getattr(NEUTRAL, name) for name in STATEFUL)
    return stateless and not _stop_under_way(sampling.stop, ids, tokenizer)


def rest(request: Request, choice: int, ids: Sequence[int], attempt: int) -> Request:
    """One choice's own request: its tokens are prompt now, and what they used of the budget is gone. Engines count a
    seed up with the choices, and this one is the first of its request."""
    sampling = request.sampling
    left = None if sampling.max_tokens is None else sampling.max_tokens - len(ids)
    seed = None if sampling.seed is None else sampling.seed + choice
    return msgspec.structs.replace(
        request,
        id=f"{request.id}-{choice}-{attempt}",
        prompt=np.concatenate([request.prompt, np.array(ids, np.int32)]),
        sampling=msgspec.structs.replace(
            sampling, seed=seed, max_tokens=left, min_tokens=max(sampling.min_tokens - len(ids), 0)
        ),
        n=1,
    )


def _stop_under_way(stops: Sequence[str], ids: Sequence[int], tokenizer: Tokenizer | None) -> bool:
    """The text so far ends in the beginning of a stop string, or may do: half a character says nothing yet."""
    if not stops:
        return False
    if tokenizer is None:
        return True
    tail = ids[-TOKENS_A_CHARACTER * max(map(len, stops)) :]
    stream = tokenizer.stream()
    pieces = [stream.feed(id) for id in tail]
    if not pieces[-1]:
        return True
    text = "".join(pieces)
    return any(text.endswith(stop[:length]) for stop in stops for length in range(1, len(stop)))
