"""A call that names the turn it follows, and sends only what is new: the past is put before it, from the record."""

from __future__ import annotations

import msgspec

from stenograph.core import Ask, Conversation, Text, Tokens
from stenograph.errors import NotFound
from stenograph.session.tree import Tree


def recalled(tree: Tree, ask: Ask) -> Conversation | Text | Tokens:
    """The whole prompt. Instructions are a call's own: the named turn's are left out, these stand first."""
    prompt = ask.prompt
    if ask.previous is None or not isinstance(prompt, Conversation):
        return prompt
    if ask.previous not in tree.turns:
        raise NotFound(f"this session has no turn {ask.previous}", code="previous_response_not_found")
    own = int(ask.instructed)
    first = tree.conversation(ask.previous)[0].call
    past = tree.messages(ask.previous)[1 if first.instructed else 0 :]
    return msgspec.structs.replace(prompt, messages=(*prompt.messages[:own], *past, *prompt.messages[own:]))
