"""Law 9, looked at from outside: does a prompt read as the template writes the conversation?

The check is the one that the tests of the renderer use, fed with nothing but the prompt's ids and which of them were
sampled. And text is text: a prompt has as many control tokens as the same conversation without markers in its texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from bench.drift.plain import Plain
from bench.drift.way import Sent
from stenograph.core import Message
from stenograph.errors import TemplateRefused
from stenograph.render.literal import Finder
from tests.render.rollouts import Rollout, check_reads_right


class Reading:
    def __init__(self, plain: Plain) -> None:
        self._plain = plain
        self._rollout = Rollout(plain.renderer)
        markers = plain.tokenizer.markers
        self._control = frozenset(markers.values())
        self._think = markers.get("<think>"), markers.get("</think>")
        self._finder = Finder(list(markers))

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
        found, right = self._control_tokens(sent.ids), self._control_tokens(self._without_markers(sent))
        return f"{found} control tokens where the template writes {right}" if found != right else None

    def _control_tokens(self, ids: Sequence[int]) -> int:
        """But for empty reasoning blocks, which say nothing: templates put them into history, or take them out."""
        count = sum(id in self._control for id in ids)
        if self._think[0] not in ids:
            return count
        words = (id for id in ids if id in self._control or self._plain.decode([id], special=True).strip())
        return count - 2 * sum(pair == self._think for pair in pairwise(words))

    def _without_markers(self, sent: Sent) -> list[int]:
        messages = tuple(self._harmless(message) for message in sent.meant.messages)
        return self._plain.encode(self._plain.render(msgspec.structs.replace(sent.meant, messages=messages)))

    def _harmless(self, message: Message) -> Message:
        if message.role == "assistant" or not message.content:
            return message
        return msgspec.structs.replace(message, content=self._finder.replace(message.content, lambda _: "marker"))
