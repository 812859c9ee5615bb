from __future__ import annotations

import pytest

from tests.field.families import NAMES
from tests.stage import models


@pytest.fixture(scope="session", params=NAMES)
def model(request: pytest.FixtureRequest) -> models.Model:
    """Each row of FIELD D is a test on every family."""
    return models.model(request.param)


@pytest.fixture(params=["template", "verbatim"])
def history(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode
