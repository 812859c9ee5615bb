"""A plugin for the tests of Atropos' own proxy: ours in its place, before their module imports it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import fastapi.testclient
import pytest
from atroposlib.envs.server_handling import managed_server_proxy, tool_call_translator

from stenograph.integrations.atropos.proxy import create_app

managed_server_proxy.create_app = create_app
tool_call_translator.VLLM_AVAILABLE = True
"""Theirs needs vLLM to read calls, and skips its tests without. Ours does not."""

_OPEN = contextlib.ExitStack()


class OneLoop(fastapi.testclient.TestClient):
    """As a server runs an application. Theirs, left to itself, runs each request on an event loop of its own."""

    def __init__(self, app: Any) -> None:
        super().__init__(app)
        _OPEN.enter_context(self)


fastapi.testclient.TestClient = OneLoop


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    _OPEN.close()
    yield
