"""Sessions for the store's tests: one that is fixed, and strategies for arbitrary ones."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import hypothesis.strategies as st
import msgspec
import numpy as np

from stenograph.core import (
    Attempt,
    Batch,
    BatchState,
    Budget,
    Call,
    Fork,
    ForkReason,
    Framing,
    Lesson,
    Message,
    Note,
    NoteKind,
    Part,
    Sampling,
    SessionFacts,
    SessionSampling,
    State,
    Teacher,
    ToolCall,
    TopLogprob,
    Turn,
    Value,
    WeightsSaid,
)
from stenograph.store.store import Record, StoredSession, TurnsCommitted

N = TypeVar("N", bound=Value)


def plain(value: Any) -> Any:
    """For comparing: arrays by dtype and bits, so that NaN equals itself and 0.0 is not -0.0."""
    return msgspec.to_builtins(value, enc_hook=lambda array: [str(array.dtype), array.tobytes().hex()])


def facts(id: str = "s", **changes: Any) -> SessionFacts:
    return msgspec.structs.replace(SessionFacts(id, key_hash="k", created_at=1.0, touched_at=2.0), **changes)


def call(id: str, parent: str | None = None, session: str = "s", tokens: int = 5, **changes: Any) -> Call:
    known: dict[str, Any] = {
        "id": id,
        "session_id": session,
        "parent": parent,
        "after": parent,
        "context": np.arange(tokens, dtype=np.int32),
        "messages": (Message("user", "hello"),),
        "protocol": "chat",
        "sampling": Sampling(max_tokens=16),
        "request_id": f"request-{id}",
        "created_at": 1.5,
    }
    return Call(**{field.name: _blank(field) for field in msgspec.structs.fields(Call)} | known | changes)


def _blank(field: msgspec.structs.FieldInfo) -> Any:
    """So that these tests need not follow every field that core gains."""
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    blanks: dict[Any, Any] = {str: "", int: 0, bool: False, float: 0.0, tuple: ()}
    return blanks.get(get_origin(field.type) or field.type) if field.required else field.default


def part(tokens: int = 3, **changes: Any) -> Part:
    ids, logprobs = np.arange(tokens, dtype=np.int32), np.full(tokens, -0.1, np.float32)
    return msgspec.structs.replace(Part(ids, logprobs, "vllm-0", "vllm", "raw"), **changes)


def committed(id: str, n: int = 1, tokens: int = 3, **of_call: Any) -> TurnsCommitted:
    """A call with turns `id.0`, `id.1`, …"""
    made = call(id, **of_call)
    reply = Message("assistant", "hi")
    return TurnsCommitted(tuple(Turn(f"{id}.{i}", made, i, (part(tokens),), reply, "stop") for i in range(n)))


def records(session: StoredSession) -> Sequence[Record]:
    return [session.facts, *session.calls]


def specimen() -> StoredSession:
    """A session in which every field is something, and two choices, two parts, a fork and a child occur."""
    first = committed("c1", n=2)
    paused = msgspec.structs.replace(
        first.turns[1],
        parts=(part(2, weight_version="v1", step=1, version_source="engine"), part(1, engine="vllm-1")),
        reply=Message("assistant", None, "hm", (ToolCall("t1", "f", {"x": 1.5}), ToolCall("t2", "g", "{x"))),
        finish_reason="tool_calls",
        stop_reason=7,
        limit="context",
        notes=(Note(NoteKind.TOOL_CALL_UNPARSED, "t2"),),
        top=((TopLogprob(1, -0.5), TopLogprob(2, -0.25)), (), (TopLogprob(3, -1e300),)),
    )
    second = committed(
        "c2",
        parent="c1.1",
        fork=Fork(ForkReason.ASSISTANT_EDITED, 1, "content"),
        notes=(Note(NoteKind.PREFILL),),
        labels={"user": "ä"},
        sampling=Sampling(temperature=0.7, stop=("\n",), stop_token_ids=(2,), logit_bias={5: -1.0}, max_tokens=9),
        idempotency_key="i",
        own_stops=(2,),
        text_chars=6,
        cached_tokens=4,
        constrained=True,
    )
    known = facts(
        group="g",
        group_size=8,
        role="eval",
        state=State.COMPLETED,
        history="verbatim",
        reasoning="strict",
        sampling=SessionSampling({"top_p": 0.5}, {"seed": 1}),
        budget=Budget(9, 900),
        ttl=60.0,
        metadata={"task": [1, None, {"deep": "ä"}]},
        reward=0.5,
        rewards={"c1.0": None, "c1.1": 1.0},
        scores={"length": 2.0},
        reward_metadata={"by": "judge"},
        reward_revision=2,
        error="e",
        attempts={Attempt.DISCONNECTED: 1},
    )
    return StoredSession(known, (TurnsCommitted((first.turns[0], paused)), second))


BATCHES = (
    Batch(
        id="b1", group="g", size=2, place=0, sessions=("s",), completed_at=3.0,
        state=BatchState.ACKNOWLEDGED, lease="l2", leased_until=9.5, deliveries=2, stale=("z",),
    ),
    Batch(id="b2", group="g", size=1, place=1, sessions=("ä",), completed_at=4.0),
)  # fmt: skip
SAID = (WeightsSaid("v1"), WeightsSaid("v2", 7), WeightsSaid("v1", 8))
TAUGHT_BY = (
    Teacher(
        name="hinted", model="small", weight=0.5, top_k=2, positions="all", template_hash="t",
        framing=Framing("You are $name.", "ä", ({"type": "function", "function": {"name": "f"}},)),
    ),
    Teacher(name="large", model="large", weight=1.0, top_k=0, positions="sampled"),
)  # fmt: skip


def lesson(key: str = "k1", tokens: int = 3, top_k: int = 2, **changes: Any) -> Lesson:
    known: dict[str, Any] = {
        "key": key,
        "session_id": "s",
        "top_k": top_k,
        "token_ids": np.arange(tokens * top_k, dtype=np.int32),
        "logprobs": np.full(tokens * top_k, -0.25, np.float32),
        "token_logprobs": np.full(tokens, -0.5, np.float32),
    }
    return Lesson(**known | changes)


LESSONS = (lesson(), lesson("k2", tokens=0, error="it has 9 tokens too many"))

# ------------------------------------------------------------------------------------------------------- strategies

text = st.text(max_size=12)
int32 = st.integers(-(2**31), 2**31 - 1)
real = st.floats(allow_nan=False, allow_infinity=False)
scalar = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | real | text
json = st.recursive(scalar, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3))

SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    Any: json,
    str: text,
    int: int32,
    float: real,
    bool: st.booleans(),
    type(None): st.none(),
}


def whole(noun: type[N], **known: st.SearchStrategy[Any]) -> st.SearchStrategy[N]:
    """Every field is drawn by its type, those included that core will gain: a store that loses one is found out."""
    drawn = {field.name: of_type(field.type) for field in msgspec.structs.fields(noun) if field.name not in known}
    return st.builds(noun, **known, **drawn)


def of_type(type: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(type), get_args(type)
    if type in SIMPLE:
        return SIMPLE[type]
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, UnionType):
        return st.one_of(*(of_type(each) for each in arguments))
    if origin is tuple:
        return st.lists(of_type(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(of_type(arguments[0]), of_type(arguments[1]), max_size=3)
    return st.sampled_from(type) if issubclass(type, enum.Enum) else whole(type)


def array(dtype: str, length: int) -> st.SearchStrategy[Any]:
    """Any bits at all: what arrives here was checked at the engine's boundary, and is only to be kept."""
    return st.binary(min_size=4 * length, max_size=4 * length).map(lambda bits: np.frombuffer(bits, dtype))


def parts_of(length: int) -> st.SearchStrategy[Part]:
    return whole(Part, ids=array("<i4", length), logprobs=array("<f4", length))


@st.composite
def lessons(draw: st.DrawFn) -> Lesson:
    tokens, top_k = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    tops = {"token_ids": array("<i4", tokens * top_k), "logprobs": array("<f4", tokens * top_k)}
    key = st.text("0123456789abcdef", min_size=1)  # a digest: of SQLite's JSON no text with a NUL in it comes back
    return draw(whole(Lesson, key=key, top_k=st.just(top_k), token_logprobs=array("<f4", tokens), **tops))


contexts = st.integers(0, 20).flatmap(lambda length: array("<i4", length))
parts = st.lists(st.integers(0, 8).flatmap(parts_of), max_size=3).map(tuple)


@st.composite
def sessions(draw: st.DrawFn) -> StoredSession:
    id = draw(text)
    known: list[TurnsCommitted] = []
    for place in range(draw(st.integers(0, 4))):
        parents = [None, *(turn.id for each in known for turn in each.turns)]
        known.append(draw(committals(f"{place}/{draw(text)}", id, parents)))
    return StoredSession(draw(whole(SessionFacts, id=st.just(id))), tuple(known))


@st.composite
def committals(draw: st.DrawFn, id: str, session: str, parents: Sequence[str | None]) -> TurnsCommitted:
    places = {"id": st.just(id), "session_id": st.just(session), "parent": st.sampled_from(parents)}
    made = st.just(draw(whole(Call, context=contexts, **places)))
    choices = range(draw(st.integers(1, 3)))
    turns = (whole(Turn, id=st.just(f"{id}.{i}"), call=made, choice=st.just(i), parts=parts) for i in choices)
    return TurnsCommitted(tuple(draw(turn) for turn in turns))
