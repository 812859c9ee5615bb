"""The prompt that a conversation would be sent as: its ids, and their text. Nothing is recorded."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import openai

from stenograph.core import JSON
from stenograph.gateway import HERE
from stenograph.integrations.atropos.backend import Backend
from stenograph.integrations.atropos.engine import spelled
from stenograph.wire import chat_request


async def ids(client: openai.AsyncOpenAI, body: dict[str, JSON]) -> list[int]:
    """As the session's next call would have them: a path on record keeps its ids."""
    answer: Any = await client.post(f"{HERE}/tokenize", cast_to=object, body=body)
    tokens: list[int] = answer["tokens"]
    return tokens


def text(backend: Backend, body: dict[str, JSON]) -> str:
    """Without a gateway, which takes an event loop: as the first call of a session would be written."""
    request, _ = chat_request.request(msgspec.json.encode({"model": backend.model, **body}))
    renderer = backend.renderer
    conversation = renderer.relevant(chat_request.conversation(request))
    now = datetime.datetime.now()
    prompt = renderer.prompt(conversation, [], sampled=frozenset(), key="", now=now)
    return spelled(renderer.tokenizer, prompt.context.tolist())
