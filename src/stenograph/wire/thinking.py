"""The ways in which callers switch thinking on, off and up, as arguments of the chat template.

Five spellings end in two arguments, `enable_thinking` and `reasoning_effort` (the names that most templates read); the
render room knows which of them the template at hand has, and under which name. As on vLLM an effort also says whether
to think at all, and `chat_template_kwargs`, the template's own words, win over every other spelling.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from stenograph.core import JSON, Note, Value
from stenograph.wire import body, extras

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

RESERVED = frozenset(
    {"add_generation_prompt", "chat_template", "continue_final_message", "messages", "tokenize", "tools"}
)
"""Arguments of the rendering itself: whoever set them would render something else than the conversation."""


class ThinkingSwitch(Value):
    """Anthropic's and DeepSeek's form."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: JSON = None
    """A wish that no template can grant: noted."""


class ReasoningSwitch(Value):
    """OpenRouter's and OpenAI Responses' form."""

    effort: Effort | None = None
    enabled: bool | None = None
    max_tokens: JSON = None
    exclude: JSON = None
    summary: JSON = None


class Switches(Value, kw_only=True):
    """Whatever of it a protocol's body has."""

    reasoning_effort: Effort | None = None
    reasoning: ReasoningSwitch | None = None
    thinking: ThinkingSwitch | bool | None = None
    enable_thinking: bool | None = None
    """Qwen's own field, as its hosted service takes it."""
    chat_template_kwargs: dict[str, JSON] | None = None


def switches(request: msgspec.Struct) -> Switches:
    """Those of a body that has fields of these names."""
    return Switches(**{name: getattr(request, name) for name in Switches.__struct_fields__})


def template_arguments(switches: Switches) -> dict[str, JSON]:
    kwargs = switches.chat_template_kwargs or {}
    for name in sorted(RESERVED & kwargs.keys()):
        raise body.refuse(f"chat_template_kwargs.{name}", "the gateway sets it itself")
    effort = _effort(switches)
    found = {"enable_thinking": _enabled(switches, effort), "reasoning_effort": effort}
    return {name: value for name, value in found.items() if value is not None} | kwargs


def notes(switches: Switches) -> Iterator[Note]:
    if isinstance(switches.thinking, ThinkingSwitch) and switches.thinking.budget_tokens is not None:
        yield extras.ignored("thinking.budget_tokens")
    for name in ("max_tokens", "exclude", "summary"):
        if getattr(switches.reasoning, name, None) is not None:
            yield extras.ignored(f"reasoning.{name}")


def _effort(switches: Switches) -> Effort | None:
    if switches.reasoning_effort is None and switches.reasoning is not None:
        return switches.reasoning.effort
    return switches.reasoning_effort


def _enabled(switches: Switches, effort: Effort | None) -> bool | None:
    """The most outspoken switch decides."""
    if switches.enable_thinking is not None:
        return switches.enable_thinking
    if isinstance(switches.thinking, bool):
        return switches.thinking
    if switches.thinking is not None:
        return switches.thinking.type != "disabled"
    if switches.reasoning is not None and switches.reasoning.enabled is not None:
        return switches.reasoning.enabled
    return None if effort is None else effort != "none"
