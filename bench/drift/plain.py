"""What any server has: a chat template, a tokenizer, and a reading of replies. The baselines are built on it.

They get the best of it. Replies are read as Stenograph reads them, so calls are found where a family's parser would
find them; arguments reach the template as objects, as on vLLM; templates are shown reasoning by the name that they ask
for. What is left to differ is the recording.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec

from stenograph.core import JSON, Conversation, EngineFinish, Finish, Message, ToolCall
from stenograph.render.renderer import Renderer
from stenograph.render.template import as_template_sees
from stenograph.session.canonical import arguments_value
from stenograph.wire.chat_messages import MessageField, messages
from tests.render.rollouts import NOW


class Plain:
    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer
        self.tokenizer = renderer.tokenizer
        self._ids = itertools.count()

    def render(self, conversation: Conversation, *, null_content: bool = False) -> str:
        """`null_content`: templates are shown None where the caller sent it, as `apply_chat_template` shows it."""
        family = self.renderer.family(conversation)
        seen = [as_template_sees(message, family.grammar.style) for message in conversation.messages]
        if null_content:
            seen = [one | {"content": said.content} for one, said in zip(seen, conversation.messages, strict=True)]
        return family.template.render(seen, conversation.tools, {}, generate=True, now=NOW)

    def encode(self, text: str) -> list[int]:
        """Markers in it count, whoever wrote them."""
        return self.tokenizer.encode(text)

    def decode(self, ids: Sequence[int], *, special: bool) -> str:
        return self.tokenizer.decode(ids if special else [id for id in ids if id not in self.tokenizer.special])

    def reply(self, ids: Sequence[int], finish: EngineFinish, asked: Conversation, prompt: str) -> Message:
        thinking = self.renderer.family(asked).opens_thinking(prompt)
        reader = self.renderer.reader(asked, thinking=thinking, stop=(), new_call_id=self._call_id)
        reader.feed(ids)
        reader.finish(ids, Finish(finish))
        return reader.reply

    def _call_id(self) -> str:
        return f"call{next(self._ids):05}"


def conversation(body: dict[str, JSON]) -> Conversation:
    """As it was sent. Arguments that are no JSON stay text."""
    fields = msgspec.convert(body["messages"], list[MessageField])
    return Conversation(messages(fields), tuple(body.get("tools", ())))


def meant(asked: Conversation) -> Conversation:
    """What the template is to be held to: arguments as the values that they are, however they were printed."""
    return msgspec.structs.replace(asked, messages=tuple(map(_with_values, asked.messages)))


def _with_values(message: Message) -> Message:
    calls = tuple(msgspec.structs.replace(call, arguments=arguments_value(call)) for call in message.tool_calls)
    return msgspec.structs.replace(message, tool_calls=calls)


def answered(message: Message) -> dict[str, JSON]:
    """As a choice of Chat Completions has it."""
    said: dict[str, JSON] = {"role": "assistant", "content": message.content}
    if message.reasoning is not None:
        said["reasoning_content"] = message.reasoning
    return said | ({"tool_calls": [_called(call) for call in message.tool_calls]} if message.tool_calls else {})


def _called(call: ToolCall) -> dict[str, JSON]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text or "{}"}}
