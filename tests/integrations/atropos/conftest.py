"""The API's fake, and a sender that is in a hurry."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from stenograph.integrations.atropos import sender
from tests.integrations.atropos.trajectory_api import FakeApi


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "FIRST_SECONDS", 0.002)
    monkeypatch.setattr(sender, "LONGEST_SECONDS", 0.02)
    monkeypatch.setattr(sender, "LOOK_SECONDS", 0.02)


@pytest.fixture
async def api(hurried: None) -> AsyncIterator[FakeApi]:
    fake = FakeApi()
    await fake.start()
    yield fake
    await fake.close()
