"""The sampling of one call: the session's word over the agent's, what is left of context and budget, the real stops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from stenograph.core import Ask, EngineInfo, Guide, Note, NoteKind, Protocol, Sampling, Value
from stenograph.errors import CallerError, ContextLengthExceeded

JUDGED_APART = frozenset({"max_tokens", "stop_token_ids", "stop", "guide"})
"""The first three are set on every request, and every engine can do them. A guide is judged by its kind."""

ONE_CALL_FIELD: Mapping[Protocol, str] = {"messages": "tool_choice.disable_parallel_tool_use"}
"""Where it is not OpenAI's."""
PROMPT_FIELD: Mapping[Protocol, str] = {
    "chat": "messages",
    "completions": "prompt",
    "responses": "input",
    "messages": "messages",
    "generate": "token_ids",
}
"""What the prompt is called in a body."""


class Limit(Value):
    tokens: int
    full: Literal["context", "budget"] | None
    """What is full where a reply reaches it; None: the agent's own `max_tokens`."""


def overlaid(ask: Ask, defaults: Mapping[str, Any], force: Mapping[str, Any]) -> tuple[Sampling, tuple[Note, ...]]:
    """Defaults fill what the agent left out; force wins, and is noted where the agent had said otherwise."""
    filling = {name: value for name, value in defaults.items() if name not in ask.given}
    sampling: Sampling = msgspec.structs.replace(ask.sampling, **{**filling, **force})
    overridden = sorted(name for name in force if name in ask.given and getattr(ask.sampling, name) != force[name])
    notes = (Note(NoteKind.SAMPLING_FORCED, ", ".join(overridden)),) if overridden else ()
    return sampling, notes


def check_supported(sampling: Sampling, top_logprobs: int, engine: EngineInfo) -> None:
    """What cannot be honoured is refused: dropping it would sample from another distribution than was asked for."""
    for name in sampling.unusual():
        if name not in engine.supports and name not in JUDGED_APART:
            raise CallerError(f"engine {engine.name} ({engine.kind}) cannot honour {name}", param=name)
    if top_logprobs > engine.max_top_logprobs:
        message = f"engine {engine.name} ({engine.kind}) reports at most {engine.max_top_logprobs} top logprobs"
        raise CallerError(message, param="top_logprobs")


def check_guide(guide: Guide | None, ask: Ask, engine: EngineInfo) -> None:
    """The same of what a reply is held to; `guide` is the ask's own, and what the model's family adds to it."""
    if guide is None or guide.kind in engine.guides:
        return
    field, what = _demanded(guide, ask)
    message = f"{field}: engine {engine.name} ({engine.kind}) cannot hold a reply to {what}"
    raise CallerError(message, code="unsupported_parameter", param=field)


def _demanded(guide: Guide, ask: Ask) -> tuple[str, str]:
    if ask.tool_choice == "required":
        return "tool_choice", "tool calls"
    if ask.sampling.guide is None:
        return ONE_CALL_FIELD.get(ask.protocol, "parallel_tool_calls"), "one call"
    where = "" if guide == ask.sampling.guide else " where the model may think or call tools first"
    return ask.guide_field, f"a form of this kind{where}"


def limit(asked: int | None, prompt_tokens: int, max_model_len: int, budget: int | None, protocol: Protocol) -> Limit:
    """The nearest of three ends: what the agent asked for, the model's context, the session's budget."""
    room = max_model_len - prompt_tokens
    if room <= 0:
        raise ContextLengthExceeded.of(prompt_tokens, max_model_len, PROMPT_FIELD[protocol])
    limits = [Limit(room, "context")]
    limits += [] if budget is None else [Limit(budget, "budget")]
    limits += [] if asked is None else [Limit(asked, None)]
    return min(reversed(limits), key=lambda limit: limit.tokens)


def with_stops(sampling: Sampling, max_tokens: int, closes: frozenset[int], texts: tuple[str, ...]) -> Sampling:
    """As it is sent. `closes` and `texts` are the template's own ways to close a turn. A caller that ignores the end
    of a reply does so for those too."""
    if sampling.ignore_eos:
        return msgspec.structs.replace(sampling, max_tokens=max_tokens)
    own = sorted(closes - set(sampling.stop_token_ids))
    return msgspec.structs.replace(
        sampling,
        max_tokens=max_tokens,
        stop_token_ids=(*sampling.stop_token_ids, *own),
        stop=(*sampling.stop, *(text for text in texts if text not in sampling.stop)),
    )


def own_stops(asked: Sampling, sent: Sampling) -> tuple[int | str, ...]:
    """What was added to the caller's stops."""
    ids = (id for id in sent.stop_token_ids if id not in asked.stop_token_ids)
    return (*ids, *(text for text in sent.stop if text not in asked.stop))
