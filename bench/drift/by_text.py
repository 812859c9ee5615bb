"""Extending by decoded text, as Atropos' ManagedServer does (atroposlib 0.4.0, list mode, before its vLLM server).

It keeps nodes: a text, its tokens, which of them were sampled. A prompt is rendered, and the first node whose text it
begins with is extended: the node's tokens, then those of the rest of the text. The text of a node is the prompt's and
the decoded reply's, so a stop token is not in it (it is skipped) though it is in the tokens. An extension replaces its
node; anything else begins one. Kept as they are there: `<think>` in a message is hidden from the template; with tools,
calls are put back as the raw text that they were parsed from, control tokens and all.

In its favour: a call parser for every family (it needs vLLM's). Its tokenizer's own BOS, and the check that takes a
doubled one away again, come to nothing on all of our templates, and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from bench.drift.model import Model, Spoken
from bench.drift.plain import Plain, answered, conversation, meant
from bench.drift.way import Refused, Sent, Trained
from stenograph.core import JSON, Conversation, Message, Value
from stenograph.errors import TemplateRefused

HIDDEN = (("<think>", "__MNGD_THINK__"), ("</think>", "__MNGD_ENDTHINK__"))


class Node(Value):
    text: str
    tokens: list[int]
    mask: list[bool]
    logprobs: list[float]


class ByText:
    def __init__(self, plain: Plain, model: Model) -> None:
        self._plain = plain
        self._model = model
        self._nodes: list[Node] = []
        self._raw: dict[str, str] = {}
        """By a call's id, the text that it was parsed from."""
        self._answers: dict[str, str] = {}
        """By a text that was answered, control tokens and all, what the model had said."""
        self._sent: list[Sent] = []

    async def ask(self, body: dict[str, JSON], *, again: bool) -> list[dict[str, JSON]]:
        asked = conversation(body)
        text = self._render(asked)
        before = next((node for node in self._nodes if text.startswith(node.text)), None)
        known = before or Node("", [], [], [])
        prompt = known.tokens + self._plain.encode(text[len(known.text) :])
        made = await self._model.generate(prompt, body["seed"], body.get("n", 1))
        self._sent.append(Sent(prompt, _runs(known.mask), self._meant(asked)))
        return [self._answer(asked, text, before, prompt, spoken) for spoken in made.choices]

    def sent(self) -> list[Sent]:
        return self._sent

    def samples(self) -> list[Trained]:
        return [Trained(node.tokens, node.mask, node.logprobs) for node in self._nodes]

    def _render(self, asked: Conversation) -> str:
        shown = tuple(self._shown(message) for message in asked.messages)
        try:
            text = self._plain.render(msgspec.structs.replace(asked, messages=shown), null_content=True)
        except TemplateRefused as refused:
            raise Refused(500, refused.message) from refused
        for marker, hidden in HIDDEN:
            text = text.replace(hidden, marker)
        return text

    def _shown(self, message: Message) -> Message:
        if message.role != "assistant":
            return message
        if message.tool_calls:
            message = Message("assistant", self._raw[message.tool_calls[0].id])
        content = message.content
        for marker, hidden in HIDDEN:
            content = content and content.replace(marker, hidden)
        return msgspec.structs.replace(message, content=content)

    def _answer(
        self, asked: Conversation, text: str, before: Node | None, prompt: list[int], spoken: Spoken
    ) -> dict[str, JSON]:
        said = self._plain.decode(spoken.ids, special=bool(asked.tools))
        self._keep(before, _node(text + said, before, prompt, spoken))
        read = self._plain.reply(spoken.ids, spoken.finish, asked, text)
        if not read.tool_calls:
            self._answers[said] = self._said(spoken.ids)
            return answered(Message("assistant", said))
        self._raw.update({call.id: said for call in read.tool_calls})
        return answered(msgspec.structs.replace(read, reasoning=None))

    def _said(self, ids: Sequence[int]) -> str:
        """Without the stop token at its end."""
        stopped = ids[-1] in self._plain.renderer.stop_ids
        return self._plain.decode(ids[:-1] if stopped else ids, special=True)

    def _meant(self, asked: Conversation) -> Conversation:
        """The template is not to blame for control tokens that were answered as text, and came back as text."""
        messages = (self._as_said(message) for message in meant(asked).messages)
        return msgspec.structs.replace(asked, messages=tuple(messages))

    def _as_said(self, message: Message) -> Message:
        content = message.content or ""
        return msgspec.structs.replace(message, content=self._answers.get(content, message.content))

    def _keep(self, before: Node | None, node: Node) -> None:
        if before in self._nodes:
            self._nodes[self._nodes.index(before)] = node
        else:
            self._nodes.append(node)


def _node(text: str, before: Node | None, prompt: list[int], spoken: Spoken) -> Node:
    known = before or Node("", [], [], [])
    new = len(prompt) - len(known.tokens)
    return Node(
        text=text,
        tokens=[*prompt, *spoken.ids],
        mask=known.mask + [False] * new + [True] * len(spoken.ids),
        logprobs=known.logprobs + [1.0] * new + [*spoken.logprobs],
    )


def _runs(mask: list[bool]) -> list[tuple[int, int]]:
    """Where it is true, from and to."""
    edges = [place for place, (one, next) in enumerate(pairwise([False, *mask, False])) if one != next]
    return list(zip(edges[::2], edges[1::2], strict=True))
