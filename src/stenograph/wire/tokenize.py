"""Text to ids and back, in vLLM's shape.

A prompt of messages is one that the chat route would send: the same fields, the same checks. What vLLM renders beside
that (a conversation without the opening of a reply, a BOS before the template's own) no request is ever sent with here,
and so it is refused.
"""

from __future__ import annotations

import msgspec

from stenograph.core import JSON, Conversation, Text, Value
from stenograph.wire import body, chat_request, extras, thinking
from stenograph.wire.body import Id
from stenograph.wire.chat_messages import MessageField
from stenograph.wire.sampling import TokenId


class TokenizeRequest(Value, kw_only=True):
    model: str | None = None
    prompt: str | None = None
    """As Completions takes it: markers in it count. This or `messages`."""
    messages: list[MessageField] | None = None
    tools: list[dict[str, JSON]] | None = None
    reasoning_effort: thinking.Effort | None = None
    reasoning: thinking.ReasoningSwitch | None = None
    thinking: thinking.ThinkingSwitch | bool | None = None
    enable_thinking: bool | None = None
    chat_template_kwargs: dict[str, JSON] | None = None
    chat_template: JSON = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    add_special_tokens: bool | None = None
    """None: for a prompt, what the tokenizer puts around a text (BOS); for messages nothing but the template's own."""
    return_token_strs: bool | None = None
    session_id: Id | None = None


class Tokenized(Value):
    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None
    """As the vocabulary spells them, which for many is not the text that they stand for (`Ġthe`)."""


class DetokenizeRequest(Value, kw_only=True):
    tokens: list[TokenId]
    model: str | None = None
    session_id: Id | None = None


class Detokenized(Value):
    prompt: str


_TOKENIZE = msgspec.json.Decoder(TokenizeRequest)
_DETOKENIZE = msgspec.json.Decoder(DetokenizeRequest)


def tokenize(raw: bytes) -> TokenizeRequest:
    request = body.decode(raw, _TOKENIZE)
    extras.refuse_unless_neutral("chat_template", request.chat_template)
    if (request.prompt is None) == (request.messages is None):
        raise body.refuse("prompt", "either a prompt or messages: one of them")
    if request.messages is not None:
        extras.refuse_unless_neutral("add_special_tokens", request.add_special_tokens)
    return request


def detokenize(raw: bytes) -> DetokenizeRequest:
    return body.decode(raw, _DETOKENIZE)


def prompt(request: TokenizeRequest) -> Conversation | Text | None:
    """None: a text that stands for itself, without what a prompt begins with."""
    if request.messages is None:
        return None if request.add_special_tokens is False else Text(request.prompt or "")
    if not request.messages:
        raise body.refuse("messages", "expected at least one")
    return chat_request.conversation(
        chat_request.ChatRequest(
            model="",
            messages=request.messages,
            tools=request.tools,
            reasoning_effort=request.reasoning_effort,
            reasoning=request.reasoning,
            thinking=request.thinking,
            enable_thinking=request.enable_thinking,
            chat_template_kwargs=request.chat_template_kwargs,
            add_generation_prompt=request.add_generation_prompt,
            continue_final_message=request.continue_final_message,
        )
    )
