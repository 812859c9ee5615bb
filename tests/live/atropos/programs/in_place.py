"""A plugin for Atropos' own tests: our class in place of theirs, before their modules import it."""

from __future__ import annotations

from atroposlib.envs.server_handling import managed_server, server_manager, tool_call_translator

from stenograph.integrations import atropos

managed_server.ManagedServer = server_manager.ManagedServer = atropos.ManagedServer
managed_server.SequenceNode = atropos.SequenceNode
tool_call_translator.VLLM_AVAILABLE = True
"""Theirs needs vLLM to read calls, and skips its tests without. Ours does not."""
