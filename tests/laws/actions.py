"""What agents do to a conversation, as values: a test draws a list of them, which shrinks to what it takes to fail.

Every `pick` is taken modulo what there is, so that any list of actions makes sense.
"""

from __future__ import annotations

import enum
from typing import Literal, TypeAlias

import hypothesis.strategies as st

from stenograph.core import Value
from stenograph.engine.script import FaultKind


class Style(Value):
    """How a call is made, apart from what it says."""

    n: int = 1
    stream: bool = False
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0
    temperature: float = 1.0
    seed: int | None = None
    keyed: bool = False
    """With an Idempotency-Key of its own."""


class Begin(Value):
    """A conversation from its beginning."""

    session: int
    text: str
    style: Style
    system: bool = False
    tools: bool = False


class Echo(enum.StrEnum):
    """What becomes of a reply on its way back, without a change of its meaning."""

    PLAIN = "plain"
    STRIPPED = "stripped"
    PADDED = "padded"
    REFORMATTED = "reformatted"
    """The arguments of its calls are printed otherwise."""
    RENAMED = "renamed"
    """Its calls have ids of the agent's own."""


class Extend(Value):
    """Goes on behind any turn so far, the latest or an earlier one. Calls are answered first."""

    pick: int
    text: str
    style: Style
    echo: Echo = Echo.PLAIN
    bare: bool = False
    """Behind the results of calls there comes no user message."""


class Tamper(Value):
    """Goes on behind a turn, with a change that means something."""

    pick: int
    text: str
    style: Style
    what: Literal["reply", "user", "tools", "shorten"]


class Prefill(Value):
    """Begins the reply for the model."""

    pick: int
    text: str
    style: Style


class Again(Value):
    """Makes the very same call once more."""

    pick: int
    how: Literal["plain", "key", "retry"]


class Siblings(Value):
    """Several calls at once, behind one turn; with equal bodies where `texts` are equal."""

    pick: int
    texts: tuple[str, ...]
    style: Style


class Trouble(enum.StrEnum):
    """What can go wrong apart from the engine's faults."""

    STORE = "store"
    """Turns cannot be made durable."""
    TEMPLATE = "template"
    OVERFLOW = "overflow"
    NO_JSON = "no_json"
    NO_FIELD = "no_field"


class Fail(Value):
    """A call that goes wrong."""

    pick: int
    text: str
    style: Style
    what: FaultKind | Trouble


class Leave(Value):
    """The engine hangs, and the caller goes away."""

    pick: int
    text: str
    style: Style


Action: TypeAlias = Begin | Extend | Tamper | Prefill | Again | Siblings | Fail | Leave

# ------------------------------------------------------------------------------------------------------- strategies

WORDS = (
    *("hello", "What is it?", "the answer", " two  spaces ", "\n\n", "日本語", "🙂", "naïve", "{}", "x" * 30),
    *("<|im_end|>", "<|im_start|>assistant\n", "<tool_call>", "</think>", "<|eot_id|>", "<|start_header_id|>user"),
)
"""Ordinary text, and literal markers: text is text, whoever writes it."""
picks = st.integers(0, 50)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
styles = st.builds(
    Style,
    n=st.sampled_from((1, 1, 1, 2, 3)),
    stream=st.booleans(),
    max_tokens=st.sampled_from((None, None, None, 1, 7, 20)),
    stop=st.sampled_from(((), (), (), (), (), ("a",), ("\n", "is"))),
    top_logprobs=st.sampled_from((0, 0, 2)),
    temperature=st.sampled_from((1.0, 0.0, 0.7)),
    seed=st.none() | st.integers(0, 3),
    keyed=st.booleans(),
)
begins = st.builds(
    Begin, session=st.integers(0, 1), text=texts, style=styles, system=st.booleans(), tools=st.booleans()
)
extends = st.builds(Extend, pick=picks, text=texts, style=styles, echo=st.sampled_from(Echo), bare=st.booleans())
tampers = st.builds(
    Tamper, pick=picks, text=texts, style=styles, what=st.sampled_from(("reply", "user", "tools", "shorten"))
)
prefills = st.builds(Prefill, pick=picks, text=texts, style=styles)
agains = st.builds(Again, pick=picks, how=st.sampled_from(("plain", "key", "retry")))
equal_texts = st.tuples(texts, st.integers(2, 4)).map(lambda drawn: (drawn[0],) * drawn[1])
siblings = st.builds(
    Siblings, pick=picks, texts=equal_texts | st.lists(texts, min_size=2, max_size=4).map(tuple), style=styles
)
FAULTS = tuple(kind for kind in FaultKind if kind is not FaultKind.HANG)
fails = st.builds(
    Fail, pick=picks, text=texts, style=styles, what=st.sampled_from(FAULTS) | st.sampled_from(tuple(Trouble))
)
leaves = st.builds(Leave, pick=picks, text=texts, style=styles)

_going_on = (extends,) * 6
friendly = st.one_of(begins, *_going_on, agains, siblings)
"""Nothing that goes wrong, and nothing that is changed in meaning."""
anything = st.one_of(begins, *_going_on, tampers, prefills, agains, siblings, fails, fails, leaves)


def conversations(actions: st.SearchStrategy[Action]) -> st.SearchStrategy[list[Action]]:
    return st.lists(actions, min_size=3, max_size=16)
