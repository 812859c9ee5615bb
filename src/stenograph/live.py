"""A session in memory, as it stands in the store."""

from __future__ import annotations

import asyncio

from stenograph.core import SessionFacts
from stenograph.session.heard import Heard
from stenograph.session.tree import Tree
from stenograph.store.store import StoredSession


class LiveSession:
    def __init__(self, facts: SessionFacts, tree: Tree) -> None:
        self.facts = facts
        """Replaced at once where they change, and then made durable: the last commit under way has the newest."""
        self.tree = tree
        self.heard = Heard()
        self.commit_lock = asyncio.Lock()
        """Held from the last look at the tree until the turn is durable and in it; never across generation."""

    @property
    def engine(self) -> str | None:
        """Which one sampled its latest tokens."""
        return next((turn.parts[-1].engine for turn in reversed(self.tree.turns.values()) if turn.parts), None)


def revived(stored: StoredSession) -> LiveSession:
    """As it was when its last turn was committed: its next call extends it as if nothing had happened."""
    tree = Tree()
    for committed in stored.calls:
        tree.add(committed.turns)
    return LiveSession(stored.facts, tree)
