"""What is known of each family's template, checked in and reviewed: where it rewrites history, and what it refuses.

Only that. Wherever nothing stands here, a conversation is one sample, and a refusal is a failure.
"""

from __future__ import annotations

from stenograph.core import Conversation, Message
from tests.render.rollouts import NOW, TOOL
from tests.stage.models import ALWAYS, Model

NAMES = (
    *(ALWAYS, "qwen3", "llama3.1", "gpt-oss", "deepseek-v3.1", "kimi-k2", "mistral-nemo"),
    *("surrogate-glm-4.6", "qwen3.5"),
)
REWROTE = "template_rewrote_history"

REWRITTEN: dict[str, dict[str, str]] = {
    "chat": {
        "gpt-oss": "the model ends its answer with <|return|>, which history writes as <|end|>",
        "qwen3.5": "the prompt opens the reasoning, and history has none",
    },
    "instructed chat": {
        "gpt-oss": "as above",
        "qwen3.5": "as above",
        "mistral-nemo": "the system prompt moves to the last user turn",
    },
    "chat with tools": {
        "gpt-oss": "as above",
        "qwen3.5": "as above",
        "mistral-nemo": "the list of tools moves to the last user turn",
    },
    "reasoned chat": {
        "qwen3": "reasoning is dropped at a new user turn",
        "gpt-oss": "reasoning is dropped at a new user turn",
        "deepseek-v3.1": "reasoning is never written again",
        "surrogate-glm-4.6": "reasoning is dropped at a new user turn",
        "qwen3.5": "reasoning is dropped at a new user turn",
    },
    "tool loop": {},
    "reasoned tool loop": {
        "deepseek-v3.1": "reasoning is never written again",
    },
    "cut": {
        "qwen3.5": "the prompt opens the reasoning, and history has none",
    },
}
"""By the kind of conversation, the families whose template writes its past otherwise than it was, and how."""

ALTERNATE = "conversation roles must alternate user/assistant"
REFUSED: dict[tuple[str, str], str] = {
    ("llama3.1", "two calls in one reply"): "This model only supports single tool-calls at once!",
    ("mistral-nemo", "two user messages in a row"): ALTERNATE,
    ("mistral-nemo", "a user message right behind a result"): ALTERNATE,
    ("mistral-nemo", "a system message in the middle"): ALTERNATE,
    ("qwen3.5", "a system message in the middle"): "System message must be at the beginning",
}
"""Cells that a template refuses, in its own words."""
UNWRITTEN: dict[tuple[str, str], str] = {
    ("gpt-oss", "a system message in the middle"): "only the first message gives instructions",
    ("gpt-oss", "two calls in one reply"): "only the first call is written",
    ("mistral-nemo", "a call that was edited"): "instructions stand before a user's message only, and none is last",
}
"""Cells of which a template leaves something out: each is told by one note."""
TOOLS_UNTOLD = {"deepseek-v3.1"}
"""Their template writes calls and results but not the list of tools: an agent's system message has to."""


def rewritten(model: Model, kind: str, history: str = "template") -> str:
    """The fork with which such a conversation goes on; '' where it extends."""
    return REWROTE if history == "template" and model.name in REWRITTEN[kind] else ""


def refuses(model: Model, cell: str) -> bool:
    return (model.name, cell) in REFUSED


def notes_on(model: Model, cell: str) -> dict[str, int]:
    return {"field_ignored": 1} if (model.name, cell) in UNWRITTEN else {}


def opens_reasoning(model: Model) -> bool:
    """Its prompt does so itself."""
    asked = Conversation((Message("user", "Hello"),))
    family = model.house.renderer.family(asked)
    return family.opens_thinking(family.writer(asked, NOW).write(asked.messages))


def reasons(model: Model) -> bool:
    """It has a form for reasoning. Where it has none, what a model thinks is what it says."""
    return model.house.renderer.family(Conversation((), (TOOL,))).grammar.think is not None
