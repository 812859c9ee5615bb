"""Extending or failing, as OpenRLHF's OpenAI-server executor does (the example that comes with openrlhf 0.11).

A session has one buffer of tokens. A prompt is rendered and tokenized whole, and has to begin with the buffer: else an
assertion fails, which the agent sees as 500. The buffer is set before the length is looked at. In the end the calls
are stitched to one sample, each prompt beginning with the call before it, or there is none. A template's error is
swallowed, and the conversation written as lines of `Role: content`.

In its favour: tools and their calls (it drops both), logprobs without asking, and any number of executors at once. A
choice is what it has, whatever `n` says.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from bench.drift.model import CONTEXT, Generated, Model
from bench.drift.plain import Plain, answered, conversation, meant
from bench.drift.way import Refused, Sent, Trained
from stenograph.core import JSON, Conversation, Message
from stenograph.errors import TemplateRefused


class OrFail:
    def __init__(self, plain: Plain, model: Model) -> None:
        self._plain = plain
        self._model = model
        self._buffer: list[int] = []
        self._spans: tuple[tuple[int, int], ...] = ()
        """Where in the buffer something was sampled."""
        self._calls: list[Generated] = []
        self._sent: list[Sent] = []

    async def ask(self, body: dict[str, JSON], *, again: bool) -> list[dict[str, JSON]]:
        asked = conversation(body)
        text = self._render(asked)
        prompt, spans = self._extended(text), self._spans
        made = await self._model.generate(prompt, body["seed"])
        [spoken] = made.choices
        self._buffer = [*prompt, *spoken.ids]
        self._spans = (*spans, (len(prompt), len(self._buffer)))
        self._calls.append(made)
        self._sent.append(Sent(prompt, spans, meant(asked)))
        read = self._plain.reply(spoken.ids, spoken.finish, asked, text)
        said = Message("assistant", self._plain.decode(spoken.ids, special=False))
        return [answered(msgspec.structs.replace(read, reasoning=None) if read.tool_calls else said)]

    def sent(self) -> list[Sent]:
        return self._sent

    def samples(self) -> list[Trained]:
        """The last call has all of them in it."""
        wholes = [(*call.prompt, *call.choices[0].ids) for call in self._calls]
        if not wholes or any(later[: len(before)] != before for before, later in pairwise(wholes)):
            return []
        mask, logprobs = [False] * len(wholes[-1]), [0.0] * len(wholes[-1])
        for call in self._calls:
            start, [spoken] = len(call.prompt), call.choices
            mask[start : start + len(spoken.ids)] = [True] * len(spoken.ids)
            logprobs[start : start + len(spoken.ids)] = spoken.logprobs
        return [Trained(wholes[-1], mask, logprobs)]

    def _extended(self, text: str) -> list[int]:
        prompt = self._plain.encode(text)
        if prompt[: len(self._buffer)] != self._buffer:
            raise Refused(500, "prefix mismatch")
        self._buffer = prompt
        if len(prompt) >= CONTEXT:
            raise Refused(400, "the prompt exceeds max_length")
        return prompt

    def _render(self, asked: Conversation) -> str:
        try:
            return self._plain.render(asked, null_content=True)
        except TemplateRefused:
            lines = (f"{message.role.capitalize()}: {message.content}" for message in asked.messages)
            return "\n".join(lines) + "\n"
