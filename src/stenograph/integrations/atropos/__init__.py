"""Atropos' interfaces (atroposlib 0.4.0), over one session of a gateway.

    from stenograph.integrations.atropos import ManagedServer

Nothing of atroposlib is imported: its server objects are taken for what they can do.
"""

from __future__ import annotations

from stenograph.integrations.atropos.client import ManagedClient
from stenograph.integrations.atropos.managed_server import ManagedServer, managed_server
from stenograph.integrations.atropos.nodes import SequenceNode

__all__ = ["ManagedClient", "ManagedServer", "SequenceNode", "managed_server"]
