from __future__ import annotations

import pytest

from tests.stage import models


@pytest.fixture(scope="session", params=models.NAMES)
def model(request: pytest.FixtureRequest) -> models.Model:
    """Each law holds on every tokenizer at hand."""
    return models.model(request.param)
