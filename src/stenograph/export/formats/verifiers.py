"""verifiers' traces, a rollout a line (verifiers 0.4.0, `verifiers.v1.trace.WireTrace`).

Each branch is a chain of nodes, one a turn: its context, masked, and what it sampled. Branches do not share nodes, so
that a turn which several of them hold can be trained in one. A sample has no texts, so the messages have none: what is
trained are the ids.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stenograph.export.formats.columns import lines, origin
from stenograph.export.rollouts import Rollout, rollouts

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample, Span

FINISHED = ("stop", "length", "tool_calls")
"""The reasons that it knows; an abort is None there."""


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    return lines(map(row, rollouts(samples)))


def row(rollout: Rollout) -> dict[str, JSON]:
    nodes: list[dict[str, JSON]] = []
    calls: list[dict[str, JSON]] = []
    for sample in rollout:
        for number, (start, end, spans) in enumerate(_turns(sample)):
            calls.append(_call(len(nodes), spans))
            nodes.append(_node(sample, start, end, parent=len(nodes) - 1 if number else None))
    one = rollout[0]
    ended = one.status != "open"
    return {
        "id": one.session_id,
        "verifiers": {"version": "0.4.0"},
        "task": {"type": "stenograph", "data": {"id": one.group, **_task(one)}, "key": one.group},
        "agent": {"config": {}, "trainable": one.role == "train"},
        "nodes": nodes,
        "calls": calls,
        "rewards": {"reward": None if one.reward is None else {"score": one.reward}},
        "metrics": dict(one.scores),
        "info": {"stenograph": [origin(sample) for sample in rollout]},
        "is_completed": ended,
        "ok": one.status == "completed",
        "stop_condition": one.status if ended else None,
        "is_timeout": one.status == "timeout",
    }


def _task(sample: Sample) -> dict[str, JSON]:
    prompt = sample.metadata.get("prompt")
    return {"prompt": prompt} if isinstance(prompt, str) else {}


def _turns(sample: Sample) -> Iterator[tuple[int, int, list[Span]]]:
    """The stretches of the sequence, each up to the end of what a turn sampled, and that turn's spans. Behind the last:
    a leaf that sampled nothing."""
    start = 0
    for _, run in itertools.groupby(sample.spans, key=lambda span: span.turn_id):
        spans = list(run)
        yield start, spans[-1].end, spans
        start = spans[-1].end
    if start < len(sample.tokens):
        yield start, len(sample.tokens), []


def _node(sample: Sample, start: int, end: int, *, parent: int | None) -> dict[str, JSON]:
    mask = [bool(trained) for trained in sample.mask[start:end].tolist()]
    logprobs = sample.logprobs[start:end].tolist()
    return {
        "parent": parent,
        "message": {"role": "assistant", "content": None},
        "sampled": bool(sample.sampled[start:end].any()),
        "token_ids": sample.tokens[start:end].tolist(),
        "mask": mask,
        "logprobs": [logprob for logprob, trained in zip(logprobs, mask, strict=True) if trained],
    }


def _call(node: int, spans: list[Span]) -> dict[str, JSON]:
    if not spans:
        return {"node": node}
    last = spans[-1]
    return {
        "node": node,
        "model": last.model,
        "finish_reason": last.finish_reason if last.finish_reason in FINISHED else None,
    }
