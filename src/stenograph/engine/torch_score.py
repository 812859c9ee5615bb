"""How likely a transformers model finds each token of a sequence. Nothing here waits or knows of a loop.

What was computed for one sequence is kept until the next one, which goes on where the two part: sequences that are
scored in the order of a tree's branches have what they share computed once.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from stenograph.engine.scoring import Scored, scored_from
from stenograph.engine.torch_batch import best, exact_head

AT_ONCE = 256
"""Positions whose logits are held at a time: with 150,000 tokens in a vocabulary, 150 MB."""


class Scorer:
    def __init__(self, model: Any) -> None:
        self._model = model
        self._ids: list[int] = []
        self._cache: Any = DynamicCache()
        """Keys and values of `_ids`."""

    def forget(self) -> None:
        """What was computed under weights that are no more."""
        self._ids, self._cache = [], DynamicCache()

    @torch.inference_mode()  # type: ignore[untyped-decorator, unused-ignore]
    def scored(self, label: str, ids: list[int], top_k: int, start: int) -> Scored:
        """In pieces, each of which finds those before it in the cache: all logits at once may not fit in memory. The
        last token is not computed: nothing that follows it is asked about."""
        kept = self._go_back(ids, start - 1)
        logprobs: list[float] = []
        tops: list[dict[int, float]] = []
        for begin in range(kept, len(ids) - 1, AT_ONCE):
            piece = ids[begin : min(begin + AT_ONCE, len(ids) - 1)]
            wanted = min(begin + len(piece) - (start - 1), len(piece))
            for odds, id in zip(self._read(piece, wanted), ids[begin + len(piece) - wanted + 1 :], strict=False):
                logprobs.append(min(float(odds[id]), 0.0))
                tops.append(dict(best(odds, top_k)))
        return scored_from(label, ids, start, logprobs, tops, top_k, kept)

    def _go_back(self, ids: list[int], most: int) -> int:
        """To where the latest sequence and this one part, `most` tokens in at the latest: returns where that is. There
        are models whose state cannot be taken back."""
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._ids, ids, strict=False)))
        kept = min(shared, most)
        if kept < self._cache.get_seq_length():
            if not kept or any(type(layer) is not DynamicLayer for layer in self._cache.layers):
                self.forget()
                return 0
            self._cache.crop(kept - self._cache.get_seq_length())
            self._ids = self._ids[:kept]
        return kept

    def _read(self, piece: list[int], wanted: int) -> Any:
        """Logprobs of what follows each of the last `wanted` tokens of the piece; nothing where that is not one."""
        device = next(self._model.parameters()).device
        known, self._ids = self._ids, []  # half of a piece may be in the cache, where this fails
        with exact_head(self._model):
            read = self._model(
                input_ids=torch.tensor([piece], device=device),
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=max(wanted, 1),
            )
        self._ids = known + piece
        return torch.log_softmax(read.logits[0].float().cpu(), -1)[:wanted] if wanted > 0 else []
