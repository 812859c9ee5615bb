"""Prompts as JSON, each id spelt once: a session's prompt mostly begins as its last one did (law 8)."""

from __future__ import annotations

from collections import OrderedDict

import msgspec
import numpy as np

from stenograph.core import Ids, Request, Value

ROOM = 8_000_000
"""Ids that are remembered, at about ten bytes each."""


class Spelt(Value):
    ids: Ids
    text: bytes


def spelled(prompt: Ids) -> msgspec.Raw:
    return msgspec.Raw(_encoded(prompt))


class Speller:
    """Of one engine: the latest prompt of each session, those that were longest not asked for forgotten first."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._latest: OrderedDict[str, Spelt] = OrderedDict()
        self.remembered = 0
        """Ids, in all."""

    def spelled(self, request: Request) -> msgspec.Raw:
        before = self._latest.pop(request.session_id, None)
        text = _continued(before, request.prompt)
        self._latest[request.session_id] = Spelt(request.prompt, text)
        self.remembered += len(request.prompt) - (len(before.ids) if before else 0)
        while self.remembered > self._room:
            _, oldest = self._latest.popitem(last=False)
            self.remembered -= len(oldest.ids)
        return msgspec.Raw(text)


def _continued(before: Spelt | None, prompt: Ids) -> bytes:
    """Where the prompt does not begin as the one before, it is spelt anew."""
    old = len(before.ids) if before else 0
    if before is None or not 0 < old < len(prompt) or not np.array_equal(prompt[:old], before.ids):
        return _encoded(prompt)
    return before.text[:-1] + b"," + _encoded(prompt[old:])[1:]


def _encoded(ids: Ids) -> bytes:
    return msgspec.json.encode(ids.tolist())
