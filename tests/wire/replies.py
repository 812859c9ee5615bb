"""Answers of one choice, as a reader of replies tells them: reasoning, then texts and calls in any order."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from stenograph.core import JSON, CallDelta, Closed, Done, Event, FinishReason, Piece, Value
from tests.wire.answers import LOGPROBS, REASONS, opened, piece

SOME = st.text(min_size=1, max_size=5)
CUSTOM = "patch"
"""A tool that takes one text. Every other name is a function's."""
NAMES = st.sampled_from(["look", CUSTOM, "agents__spawn"])
ARGUMENTS = st.one_of(
    SOME.map(lambda text: json.dumps({"input": text})),
    st.sampled_from(['{"city": "Paris"}', '{"input": 3}', '{"input": "a", "more": 1}', "{}", "", "no JSON", '"input"']),
)


class Step(Value):
    """Something that is said; `rank` is its place within a piece."""

    rank: int
    reasoning: str = ""
    content: str = ""
    call: CallDelta | None = None


@st.composite
def _called(draw: st.DrawFn, index: int) -> list[Step]:
    whole, name = draw(ARGUMENTS), draw(NAMES)
    cut = draw(st.integers(0, len(whole)))
    first = Step(3, call=CallDelta(index, f"call-{index}", name, whole[:cut]))
    return [first] if cut == len(whole) else [first, Step(0, call=CallDelta(index, arguments=whole[cut:]))]


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    said = [Step(1, reasoning=text) for text in draw(st.lists(SOME, max_size=3))]
    calls = 0
    for is_call in draw(st.lists(st.booleans(), max_size=4)):
        if is_call:
            said += draw(_called(calls))
            calls += 1
        else:
            said += [Step(2, content=text) for text in draw(st.lists(SOME, min_size=1, max_size=2))]
    return said


def _pieces(said: Sequence[Step], joined: Sequence[bool]) -> list[list[Step]]:
    """Neighbours may share a piece, where its order says what came first."""
    groups: list[list[Step]] = []
    for step, with_last in zip(said, joined, strict=True):
        last = groups[-1][-1] if groups else None
        goes_on = step.rank == 0 and last is not None and last.rank == 3
        if with_last and last is not None and (goes_on or last.rank <= step.rank):
            groups[-1].append(Step(3, call=step.call) if goes_on else step)
        else:
            groups.append([step])
    return groups


@st.composite
def replies(draw: st.DrawFn, reasons: Sequence[FinishReason] = REASONS) -> list[Event]:
    said = draw(steps())
    events: list[Event] = [opened()]
    sampled = 0
    for group in _pieces(said, draw(st.lists(st.booleans(), min_size=len(said), max_size=len(said)))):
        for said_now in ([], group) if draw(st.booleans()) else (group,):
            logprobs = draw(st.lists(LOGPROBS, min_size=1, max_size=3))
            sampled += len(logprobs)
            events.append(_piece(said_now, logprobs))
    return [*events, Closed(0, draw(st.sampled_from(reasons))), Done(2, sampled)]


def _piece(group: list[Step], logprobs: list[float]) -> Piece:
    return piece(
        0,
        range(100, 100 + len(logprobs)),
        "".join(step.content for step in group),
        logprobs=logprobs,
        reasoning="".join(step.reasoning for step in group),
        calls=[step.call for step in group if step.call is not None],
    )


TOOLS: list[JSON] = [
    {"type": "function", "name": "look", "parameters": {"type": "object"}},
    {"type": "custom", "name": CUSTOM},
    {"type": "namespace", "name": "agents", "description": "", "tools": [{"type": "function", "name": "spawn"}]},
]
