"""What a sample's first prompt was written from, and how a teacher in another context is shown it."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import msgspec

from stenograph.core import JSON, Call, Conversation, Framing, Ids, Sample, Value
from stenograph.errors import CallerError
from stenograph.render.renderer import Renderer
from stenograph.session.tree import Tree
from stenograph.teacher.framing import filled, framed

Blobs = Callable[[str], bytes | None]


class Reading(Value):
    """A sample, and the record that it is from."""

    sample: Sample
    tree: Tree
    opened_at: float
    """Unix seconds: templates that write a date have to write the same one."""


class Beginning(Value):
    """What a teacher in another context reads before the student's first word."""

    ids: Ids
    instead_of: int
    """So many of the sample's tokens: those of its first prompt."""


def beginning(reading: Reading, framing: Framing, renderer: Renderer, blobs: Blobs) -> Beginning:
    root = reading.tree.path(reading.sample.leaf_turn_id)[0].call
    shown = framed(opening(reading.tree, root, blobs), filled(framing, reading.sample.metadata))
    now = datetime.datetime.fromtimestamp(reading.opened_at)
    prompt = renderer.prompt(renderer.relevant(shown), (), sampled=frozenset(), key="", now=now)
    return Beginning(prompt.context, len(root.context))


def opening(tree: Tree, root: Call, blobs: Blobs) -> Conversation:
    """The conversation that a root of the tree was rendered from: of its past, what was said."""
    if not root.template_hash:
        raise CallerError("its first prompt is text or ids, and no template wrote it: it has no other context")
    past = [one for turn in tree.conversation(root.after) for one in (*turn.call.messages, turn.written or turn.reply)]
    messages = (*past[: root.shared], *root.messages)
    if len(messages) != root.reply_index:
        raise CallerError("its first prompt cannot be put together again from the record")
    return Conversation(messages, tuple(_kept(blobs, root.tools_hash)), dict(_kept(blobs, root.arguments_hash)))


def _kept(blobs: Blobs, hash: str) -> JSON:
    body = blobs(hash)
    if body is None:
        raise CallerError("the tools of its first prompt are not in the store")
    return msgspec.json.decode(body)
