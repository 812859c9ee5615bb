"""Trees of turns to try things on: drawn at random, or told in a line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import hypothesis.strategies as st
import numpy as np

from stenograph.core import (
    Call,
    FinishReason,
    Fork,
    ForkReason,
    Ids,
    Message,
    Note,
    NoteKind,
    Part,
    Sampling,
    SessionFacts,
    Turn,
)

FACTS = SessionFacts(id="s", key_hash="", created_at=1.0, touched_at=2.0)


def ids(*numbers: int) -> Ids:
    return np.array(numbers, np.int32)


def part(size: int, first: int = 100, version: str | None = "v1") -> Part:
    numbers = np.arange(first, first + size, dtype=np.int32)
    logprobs = np.float32(-0.1) * np.arange(1, size + 1, dtype=np.float32)
    return Part(
        ids=numbers,
        logprobs=logprobs,
        engine="scripted-0",
        engine_kind="scripted",
        logprob_kind="raw",
        weight_version=version,
    )


def call(
    id: str,
    parent: str | None = None,
    *,
    after: str | None = None,
    context: Ids | None = None,
    fork: ForkReason | None = None,
    notes: Sequence[NoteKind] = (),
    messages: Sequence[str] = (),
    tools: str = "",
    n: int = 1,
) -> Call:
    return Call(
        id=id,
        session_id="s",
        parent=parent,
        after=after or parent,
        shared=0,
        context=ids(1, 2, 3) if context is None else context,
        text_chars=0,
        text_hash="",
        inert=False,
        own_stops=(),
        messages=tuple(Message(role="user", content=text) for text in messages),
        tools_hash=tools,
        arguments_hash="",
        protocol="chat",
        model="policy",
        sampling=Sampling(max_tokens=9, stop=("x",), logit_bias={7: -1.0}),
        n=n,
        request_id="r",
        body_hash="",
        idempotency_key=None,
        template_hash="",
        tokenizer_hash="",
        created_at=1.0,
        first_token_at=None,
        finished_at=2.0,
        fork=Fork(fork, at=1) if fork else None,
        notes=tuple(Note(kind) for kind in notes),
    )


def turn(
    of: Call,
    choice: int = 0,
    parts: Sequence[Part] | None = None,
    finish: FinishReason = "stop",
    limit: Literal["context", "budget"] | None = None,
) -> Turn:
    """Turn `a` of call `a`, `a.1` for its second choice; two sampled tokens where none are told."""
    return Turn(
        id=f"{of.id}.{choice}" if choice else of.id,
        call=of,
        choice=choice,
        parts=(part(2),) if parts is None else tuple(parts),
        reply=Message(role="assistant"),
        finish_reason=finish,
        stop_reason=99 if finish == "stop" else None,
        limit=limit,
    )


# ----------------------------------------------------------------------------------------------------------- random

_id = st.integers(0, 2**31 - 1)
_logprob = st.floats(-(2.0**100), 0.0, width=32)
_ids = st.lists(_id, max_size=3).map(lambda numbers: np.array(numbers, np.int32))


@st.composite
def _parts(draw: st.DrawFn) -> Part:
    evidence = draw(st.lists(st.tuples(_id, _logprob), max_size=3))
    return Part(
        ids=np.array([id for id, _ in evidence], np.int32),
        logprobs=np.array([logprob for _, logprob in evidence], np.float32),
        engine="scripted-0",
        engine_kind="scripted",
        logprob_kind="raw",
        weight_version=draw(st.sampled_from([None, "v1", "v2"])),
    )


@st.composite
def trees(draw: st.DrawFn) -> list[Turn]:
    """Any parents, several roots, several choices, several parts, some of them empty."""
    turns: list[Turn] = []
    for number in range(draw(st.integers(0, 6))):
        earlier = st.none() | st.sampled_from(turns).map(lambda turn: turn.id) if turns else st.none()
        of = call(
            f"c{number}",
            draw(earlier),
            after=draw(earlier),
            context=draw(_ids),
            fork=draw(st.none() | st.sampled_from(ForkReason)) if turns else None,
            notes=draw(st.lists(st.sampled_from(NoteKind), max_size=2)),
            messages=draw(st.lists(st.sampled_from("ab"), max_size=3)),
            n=draw(st.integers(1, 3)),
        )
        turns += [turn(of, choice, draw(st.lists(_parts(), max_size=3))) for choice in range(of.n)]
    return turns
