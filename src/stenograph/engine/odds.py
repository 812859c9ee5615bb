"""The scripted engine's logprobs: made up, repeatable, legal, and of the kind that its script says."""

from __future__ import annotations

import math
import random
from typing import TypeAlias

import numpy as np

from stenograph.core import LogprobKind, Sampling

Row: TypeAlias = dict[int, float]
"""Logprobs by id: the sampled token first, then alternatives, best first; as vLLM lays it out."""
CERTAIN = 0.1
"""How often the model is certain: 0.0 is a legal logprob, and the one that is most easily taken for padding."""


FAINTEST = 1e-30


def chances(dice: random.Random, count: int) -> list[float]:
    """Of each sampled token. Drawn before any alternative, so that asking for those changes none of these."""
    return [1.0 if dice.random() < CERTAIN else math.exp(-dice.expovariate(1.0)) for _ in range(count)]


def row(dice: random.Random, sampled: int, chance: float, alternatives: int, vocab_size: int) -> Row:
    """Before temperature. Probabilities that sum to at most 1."""
    odds, rest = {sampled: _log(chance)}, 1 - chance
    others = dice.sample(range(vocab_size), min(alternatives + 1, vocab_size)) if alternatives else ()
    for id in others:
        if id != sampled and len(odds) <= alternatives:
            rest /= 2
            odds[id] = _log(rest)
    return odds


def reported(odds: Row, sampling: Sampling, kind: LogprobKind) -> Row:
    """As an engine of that kind reports them. Processed, a token that top-k leaves out has minus infinity."""
    if kind == "raw":
        return odds
    scaled = {id: value / max(sampling.temperature, 0.01) for id, value in odds.items()}
    if kind == "temperature" or not sampling.top_k:
        return _normal(scaled, at_most=True)
    sampled, *others = scaled
    kept = {sampled, *others[: sampling.top_k - 1]}
    return dict.fromkeys(odds, -math.inf) | _normal({id: scaled[id] for id in odds if id in kept})


def _normal(odds: Row, at_most: bool = False) -> Row:
    """So that the probabilities sum to 1; or, of a part of the vocabulary, to at most 1."""
    peak = max(odds.values())
    total = peak + math.log(sum(math.exp(value - peak) for value in odds.values()))
    shift = max(total, 0.0) if at_most else total
    return {id: _single(min(round(value - shift, 9), 0.0)) for id, value in odds.items()}


def _log(chance: float) -> float:
    return _single(math.log(max(chance, FAINTEST)))


def _single(value: float) -> float:
    """As a float32 holds it, so that the log of the engine and the record of the house can be compared exactly."""
    return float(np.float32(value))
