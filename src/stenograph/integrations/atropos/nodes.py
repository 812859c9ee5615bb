"""A session's tree as Atropos' nodes: the list it trains on, or every turn by its text.

A list holds what nobody has extended. The first turn that extends a node takes its place, any other is appended, so
that index i of a group stays index i for as long as its agent goes on with it. A tree holds every turn.

What is trained differs as it does there: a node of the list trains all that was sampled on its way, a node of the tree
its own turn alone, because its ancestors are nodes themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pydantic

from stenograph.core import PROMPT_ROLE, Logprobs, Turn
from stenograph.session.plain import Spelling

MASKED = -100
NO_LOGPROB = 1.0
"""Atropos' own words for a position that is not trained; no logprob that was reported is positive."""

State: TypeAlias = dict[str, Any]


class SequenceNode(pydantic.BaseModel):
    """As `atroposlib` has it: three arrays of one length."""

    full_text: str
    """Prompt and completion; what the last reply ended with (its stop token) is in `tokens`, and not here."""
    tokens: list[int]
    masked_tokens: list[int]
    """The token where it is trained, -100 elsewhere."""
    logprobs: list[float]
    """What the engine reported where the token is trained, 1.0 elsewhere."""
    metadata: dict[str, Any] | None = None
    """`finish_reason`, as the engine gave it."""


def state(turns: Sequence[Turn], spelling: Spelling, *, track_tree: bool) -> State:
    """What `get_state()` answers. `turns`: of one session, in the order in which they were committed."""
    if track_tree:
        sequences = by_text(turns, spelling)
        return {"sequences": sequences, "tree": dict(sequences)}
    return {"nodes": in_list(turns, spelling)}


def in_list(turns: Sequence[Turn], spelling: Spelling) -> list[SequenceNode]:
    ways = _Ways(turns)
    return [_node(ways.to(leaf), 0, spelling) for leaf in _leaves(turns)]


def by_text(turns: Sequence[Turn], spelling: Spelling) -> dict[str, SequenceNode]:
    """Of several turns of one text the first has it for its key, and each other has its turn's id behind it: a sibling
    that said the same was sampled all the same."""
    ways = _Ways(turns)
    nodes: dict[str, SequenceNode] = {}
    for turn in turns:
        way = ways.to(turn)
        node = _node(way, len(way) - 1, spelling)
        nodes[node.full_text if node.full_text not in nodes else f"{node.full_text}\0{turn.id}"] = node
    return nodes


def _leaves(turns: Sequence[Turn]) -> list[Turn]:
    leaves: list[Turn] = []
    places: dict[str, int] = {}
    for turn in turns:
        place = places.pop(turn.call.parent or "", len(leaves))
        leaves[place : place + 1] = [turn]
        places[turn.id] = place
    return leaves


class _Ways:
    def __init__(self, turns: Sequence[Turn]) -> None:
        self._by_id: Mapping[str, Turn] = {turn.id: turn for turn in turns}

    def to(self, turn: Turn) -> list[Turn]:
        """From the root, by tokens."""
        way = [turn]
        while (parent := way[-1].call.parent) is not None:
            way.append(self._by_id[parent])
        return way[::-1]


def _node(way: Sequence[Turn], trained_from: int, spelling: Spelling) -> SequenceNode:
    """`trained_from`: the first of these turns that is trained."""
    tokens: list[int] = []
    masked: list[int] = []
    logprobs: list[float] = []
    for place, turn in enumerate(way):
        context, sampled = turn.call.context.tolist(), turn.sampled.tolist()
        trained = place >= trained_from
        tokens += context + sampled
        masked += [MASKED] * len(context) + (sampled if trained else [MASKED] * len(sampled))
        logprobs += [NO_LOGPROB] * len(context)
        logprobs += decimals(turn.logprobs) if trained else [NO_LOGPROB] * len(sampled)
    return SequenceNode(
        full_text=_text(way, tokens, spelling),
        tokens=tokens,
        masked_tokens=masked,
        logprobs=logprobs,
        metadata={"finish_reason": engine_reason(way[-1])},
    )


def decimals(logprobs: Logprobs) -> list[float]:
    """Each float32 as the shortest decimal that names it: an engine's -0.1 is -0.1 again, and not -0.10000000149."""
    return logprobs.astype(np.str_).astype(np.float64).tolist() if len(logprobs) else []


def engine_reason(turn: Turn) -> str:
    """That a reply has calls in it is our reading; the engine said that it stopped."""
    return "stop" if turn.finish_reason == "tool_calls" else turn.finish_reason


def _text(way: Sequence[Turn], tokens: list[int], spelling: Spelling) -> str:
    end = len(tokens)
    while end > len(tokens) - way[-1].sampled_tokens and tokens[end - 1] in spelling.special:
        end -= 1
    text = spelling.decode(tokens[:end])
    bos = spelling.decode(spelling.encode("", special=True))
    prompts = (message.content or "" for message in way[0].call.messages if message.role == PROMPT_ROLE)
    return text.removeprefix(bos) if any(not prompt.startswith(bos) for prompt in prompts) else text
