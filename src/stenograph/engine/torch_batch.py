"""Replies that a transformers model samples together, a token each a step. Nothing here waits or knows of a loop.

Rows come and go at every step: newcomers are read in one go (prompts padded on the left), and their keys and values are
laid beside those of the rows that are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional
from transformers import DynamicCache

from stenograph.core import Request, Sampling

Tensor = Any
"""Torch brings types that change with its version, and is not in the development set."""


class Row:
    """One choice of one request."""

    def __init__(self, request: Request, choice: int) -> None:
        self.request = request
        self.choice = choice
        self.ids: list[int] = request.prompt.tolist()
        """Prompt and all that is sampled so far."""
        self.over = False
        """Finished, or nobody's any more."""
        seed = request.sampling.seed
        self.dice: Any = None if seed is None else torch.Generator().manual_seed((seed + choice) % 2**63)

    @property
    def sampled(self) -> int:
        return len(self.ids) - len(self.request.prompt)


class Token:
    def __init__(self, row: Row, id: int, logprob: float, top: list[tuple[int, float]]) -> None:
        self.row = row
        self.id = id
        self.logprob = logprob
        self.top = top


class Batch:
    def __init__(self, model: Any, ends: frozenset[int]) -> None:
        """`ends`: ids that end a reply by themselves."""
        self._model = model
        self._ends = ends
        self._rows: list[Row] = []
        self._cache: Any = None
        self._mask: Tensor = None

    @torch.inference_mode()  # type: ignore[untyped-decorator, unused-ignore]
    def step(self, newcomers: Sequence[Row]) -> list[Token]:
        """The next token of every row that goes on, and the first of each newcomer."""
        self._leave()
        tokens = self._decode() if self._rows else []
        return tokens + self._join(newcomers) if newcomers else tokens

    def forget(self) -> list[Row]:
        """All rows that go on, without what was computed for them under other weights: to be read again."""
        self._leave()
        rows, self._rows, self._cache = self._rows, [], None
        return rows

    def _leave(self) -> None:
        stay = [place for place, row in enumerate(self._rows) if not row.over]
        if len(stay) == len(self._rows):
            return
        self._rows = [self._rows[place] for place in stay]
        if stay:
            chosen = torch.tensor(stay, device=self._mask.device)
            self._cache.batch_select_indices(chosen)
            self._mask = self._mask[chosen]
            self._narrow()
        else:
            self._cache = None

    def _narrow(self) -> None:
        """Columns that only those who left had need of. With always somebody under way they would pile up for ever."""
        unused = int(self._mask.any(0).int().argmax())
        self._mask = self._mask[:, unused:]
        for layer in self._cache.layers:
            layer.keys, layer.values = layer.keys[:, :, unused:], layer.values[:, :, unused:]

    def _decode(self) -> list[Token]:
        last = torch.tensor([[row.ids[-1]] for row in self._rows], device=self._mask.device)
        self._mask = functional.pad(self._mask, (0, 1), value=1)
        logits = self._read(last, self._mask, self._cache)
        return self._drawn(self._rows, logits)

    def _join(self, newcomers: Sequence[Row]) -> list[Token]:
        width = max(len(row.ids) for row in newcomers)
        device = next(self._model.parameters()).device
        ids = torch.tensor([[0] * (width - len(row.ids)) + row.ids for row in newcomers], device=device)
        mask = torch.tensor([[0] * (width - len(row.ids)) + [1] * len(row.ids) for row in newcomers], device=device)
        cache = DynamicCache()
        tokens = self._drawn(newcomers, self._read(ids, mask, cache))
        if self._rows:
            self._mask, self._cache = _beside(self._mask, self._cache, mask, cache)
        else:
            self._mask, self._cache = mask, cache
        self._rows += newcomers
        return tokens

    def _read(self, ids: Tensor, mask: Tensor, cache: Any) -> Tensor:
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        with exact_head(self._model):
            read = self._model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
        return read.logits[:, -1].float().cpu()

    def _drawn(self, rows: Sequence[Row], logits: Tensor) -> list[Token]:
        """The logprobs are raw: of the model's own distribution, whatever is sampled from."""
        logprobs = torch.log_softmax(logits, -1)
        tokens = []
        for row, scores, odds in zip(rows, logits, logprobs, strict=True):
            id = drawn(scores, row, self._ends)
            row.ids.append(id)
            tokens.append(Token(row, id, min(float(odds[id]), 0.0), best(odds, row.request.top_logprobs)))
        return tokens


@contextmanager
def exact_head(model: Any) -> Iterator[None]:
    """Logits in full precision, whatever the model's: bfloat16 rounds a logit of 15 to the next sixteenth, and two
    reads of one sequence differed by 0.055 on average, in place of 0.034. What a family does to its logits behind the
    head stays as it is."""

    def again(head: Any, inputs: tuple[Tensor, ...], rounded: Tensor) -> Tensor:
        bias = None if head.bias is None else head.bias.float()
        return functional.linear(inputs[0].float(), head.weight.float(), bias)

    head = model.get_output_embeddings()
    if head is None or head.weight.dtype == torch.float32:
        yield
        return
    hook = head.register_forward_hook(again)
    try:
        yield
    finally:
        hook.remove()


def _beside(mask: Tensor, cache: Any, more_mask: Tensor, more: Any) -> tuple[Tensor, Any]:
    """Two batches as one, the shorter padded on its left, where the mask hides it."""
    width = max(mask.shape[1], more_mask.shape[1])

    def padded(states: Tensor, lacking: int) -> Tensor:
        return functional.pad(states, (0, 0, lacking, 0))

    for layer, other in zip(cache.layers, more.layers, strict=True):
        lacking, other_lacking = width - layer.keys.shape[2], width - other.keys.shape[2]
        layer.keys = torch.cat([padded(layer.keys, lacking), padded(other.keys, other_lacking)])
        layer.values = torch.cat([padded(layer.values, lacking), padded(other.values, other_lacking)])
    masks = [functional.pad(one, (width - one.shape[1], 0)) for one in (mask, more_mask)]
    return torch.cat(masks), cache


def best(logprobs: Tensor, count: int) -> list[tuple[int, float]]:
    if not count:
        return []
    values, ids = logprobs.topk(count)
    return [(id, min(value, 0.0)) for id, value in zip(ids.tolist(), values.tolist(), strict=True)]


def drawn(logits: Tensor, row: Row, ends: frozenset[int]) -> int:
    sampling = row.request.sampling
    scores = logits.clone()
    for id, bias in sampling.logit_bias.items():
        scores[id] += bias
    if row.sampled < sampling.min_tokens:
        scores[[*ends, *sampling.stop_token_ids]] = -torch.inf
    if not sampling.temperature:
        return int(scores.argmax())
    chances = torch.softmax(_truncated(scores / sampling.temperature, sampling), -1)
    return int(torch.multinomial(chances, 1, generator=row.dice))


def _truncated(scores: Tensor, sampling: Sampling) -> Tensor:
    """In vLLM's order."""
    if sampling.min_p:
        chances = torch.softmax(scores, -1)
        scores = scores.masked_fill(chances < sampling.min_p * chances.max(), -torch.inf)
    if sampling.top_k and sampling.top_k < len(scores):
        scores = scores.masked_fill(scores < scores.topk(sampling.top_k).values[-1], -torch.inf)
    if sampling.top_p < 1:
        ordered, places = scores.sort(descending=True)
        chances = torch.softmax(ordered, -1)
        outside = chances.cumsum(-1) - chances >= sampling.top_p
        scores = scores.index_fill(0, places[outside], -torch.inf)
    return scores
