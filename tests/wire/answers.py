"""Answers to encode: by hand, and at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from stenograph.core import CallDelta, Closed, Done, Event, FinishReason, Opened, Piece, TopLogprob

LOGPROBS = st.floats(max_value=0, min_value=-(2.0**13), width=32, allow_nan=False)
IDS = st.integers(0, 2**31 - 1)
TOPS = st.lists(st.builds(TopLogprob, IDS, LOGPROBS), max_size=2).map(tuple)
REASONS: Sequence[FinishReason] = ("stop", "length", "tool_calls")
"""Those that OpenAI's types know too."""


def token_bytes(id: int) -> bytes:
    """Every byte there is, so that tokens are halves of characters too."""
    return bytes([id % 256, id // 256 % 256])


def opened(choices: int = 1, prompt: Sequence[int] = (1, 2)) -> Opened:
    turn_ids = tuple(f"turn-{index}" for index in range(choices))
    return Opened("c1", turn_ids, np.array(prompt, np.int32), "policy", 1700000000.25)


def piece(
    choice: int,
    ids: Sequence[int] = (),
    content: str = "",
    *,
    logprobs: Sequence[float] | None = None,
    reasoning: str = "",
    calls: Sequence[CallDelta] = (),
    top: tuple[tuple[TopLogprob, ...], ...] | None = None,
) -> Piece:
    values = [-0.5] * len(ids) if logprobs is None else logprobs
    return Piece(choice, np.array(ids, np.int32), np.array(values, np.float32), top, content, reasoning, tuple(calls))


@st.composite
def _calls(draw: st.DrawFn, before: int) -> tuple[CallDelta, ...]:
    """More of the last call of those `before`, then perhaps new ones."""
    deltas = [CallDelta(before - 1, arguments=draw(st.text(max_size=4)))] if before and draw(st.booleans()) else []
    for index in range(before, before + draw(st.integers(0, 2))):
        deltas.append(
            CallDelta(index, f"call-{index}", draw(st.text(min_size=1, max_size=4)), draw(st.text(max_size=4)))
        )
        deltas.extend(CallDelta(index, arguments=text) for text in draw(st.lists(st.text(max_size=4), max_size=2)))
    return tuple(deltas)


@st.composite
def _choice(draw: st.DrawFn, index: int) -> list[Event]:
    events: list[Event] = []
    calls = 0
    for _ in range(draw(st.integers(0, 6))):
        rows = draw(st.lists(st.tuples(IDS, LOGPROBS, TOPS), max_size=3))
        deltas = draw(_calls(calls))
        calls = max([calls, *(delta.index + 1 for delta in deltas)])
        events.append(
            piece(
                index,
                [row[0] for row in rows],
                draw(st.text(max_size=4)),
                logprobs=[row[1] for row in rows],
                reasoning=draw(st.text(max_size=3)),
                calls=deltas,
                top=tuple(row[2] for row in rows) if draw(st.booleans()) else None,
            )
        )
    stop = draw(st.one_of(st.none(), st.integers(0, 9), st.text(max_size=3)))
    return [*events, Closed(index, draw(st.sampled_from(REASONS)), stop)]


@st.composite
def answers(draw: st.DrawFn) -> list[Event]:
    """A whole answer: choices interleaved at random, each in its own order."""
    choices = [draw(_choice(index)) for index in range(draw(st.integers(1, 3)))]
    turns = draw(st.permutations([index for index, events in enumerate(choices) for _ in events]))
    queues = [iter(events) for events in choices]
    sampled = sum(len(event.ids) for events in choices for event in events if isinstance(event, Piece))
    first = opened(len(choices), draw(st.lists(IDS, max_size=3)))
    done = Done(len(first.prompt), sampled, draw(st.one_of(st.none(), st.integers(0, 3))))
    return [first, *(next(queues[index]) for index in turns), done]
