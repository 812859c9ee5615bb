from __future__ import annotations

import pytest

from tests.live.agents.harness import FAMILY
from tests.stage import models


@pytest.fixture(scope="session")
def said() -> models.Model:
    """The model that all agents talk to: it takes a second to load."""
    return models.model(FAMILY)
