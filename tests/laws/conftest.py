from __future__ import annotations

from collections.abc import Iterator

import pytest

from stenograph.store.store import Store
from tests.stage import models, stores


@pytest.fixture(scope="session", params=models.NAMES)
def model(request: pytest.FixtureRequest) -> models.Model:
    """Each law holds on every tokenizer at hand."""
    return models.model(request.param)


@pytest.fixture(params=stores.STORES)
def opened(request: pytest.FixtureRequest) -> Iterator[tuple[Store, stores.Load]]:
    """A store, and how somebody else reads it."""
    with stores.opened(request.param) as store:
        yield store
