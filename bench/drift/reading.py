"""Law 9, looked at from outside: does a prompt read as the template writes the conversation?

The check is the one that the tests of the renderer use, fed with nothing but the prompt's ids and which of them were
sampled. And text is text: a prompt has as many control tokens as the same conversation without markers in its texts.
"""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

from bench.drift.plain import Plain
from bench.drift.way import Sent
from stenograph.core import Message
from stenograph.errors import TemplateRefused
from tests.render.rollouts import Rollout, check_reads_right


class Reading:
    def __init__(self, plain: Plain) -> None:
        self._plain = plain
        self._rollout = Rollout(plain.renderer)
        markers = plain.tokenizer.markers
        self._control = frozenset(markers.values())
        self._markers = re.compile("|".join(map(re.escape, sorted(markers, key=len, reverse=True))))

    def fault(self, sent: Sent) -> str | None:
        """In words; None where it reads right."""
        edges = [0, *(edge for span in sent.spans for edge in span), len(sent.ids)]
        texts = [self._plain.decode(sent.ids[start:end], special=True) for start, end in pairwise(edges)]
        try:
            check_reads_right(self._rollout.template_render(sent.meant), texts[::2], texts[1::2])
        except AssertionError as fault:
            return str(fault)
        except TemplateRefused as refused:
            return refused.message
        count, right = sum(id in self._control for id in sent.ids), self._control_tokens(sent)
        return f"{count} control tokens where the template writes {right}" if count != right else None

    def _control_tokens(self, sent: Sent) -> int:
        messages = tuple(self._harmless(message) for message in sent.meant.messages)
        text = self._plain.render(msgspec.structs.replace(sent.meant, messages=messages))
        return sum(id in self._control for id in self._plain.encode(text))

    def _harmless(self, message: Message) -> Message:
        if message.role == "assistant" or not message.content:
            return message
        return msgspec.structs.replace(message, content=self._markers.sub("marker", message.content))
