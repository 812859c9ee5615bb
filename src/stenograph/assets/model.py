"""What is known of a model apart from its weights: enough to render a prompt and to read a reply."""

from __future__ import annotations

from stenograph.core import Value

SPECIAL_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token")


class ModelFiles(Value):
    name: str
    """What to call the model where nobody says otherwise: its folder's, file's or hub name."""
    tokenizer_json: str
    """The text of a `tokenizer.json`."""
    chat_template: str | None
    """None: there is none, and the operator has to bring one (`--chat-template`)."""
    tool_chat_template: str | None
    """A second template, named `tool_use`, for conversations with tools; None where one template serves both."""
    special_tokens: dict[str, str]
    """By the names that templates use (`bos_token`, …); what a model lacks is not there."""
    max_model_len: int | None
    """What the model was trained for. An engine's own limit is often lower, and counts."""

    @property
    def eos_token(self) -> str | None:
        return self.special_tokens.get("eos_token")
